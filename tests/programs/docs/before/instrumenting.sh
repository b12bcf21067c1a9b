#!/bin/bash
# Provides the first program of the guide, compiled.
ln -s "$(command -v my-service)" my-service
