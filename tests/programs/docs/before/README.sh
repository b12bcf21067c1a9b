#!/bin/bash
# What README has its reader compile.
ln -s "$(command -v service)" service
