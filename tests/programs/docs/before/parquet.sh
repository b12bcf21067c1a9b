#!/bin/bash
# A file.
example-nettrace-write trace.nettrace
