#!/bin/bash
# Provides the program that README.md asks the reader to compile.
ln -s "$(command -v service)" service
