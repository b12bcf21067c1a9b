#!/bin/bash
# Writes the file that the examples read.
example-nettrace-write trace.nettrace
