#!/bin/bash
# The guide's first program, compiled.
ln -s "$(command -v my-service)" my-service
