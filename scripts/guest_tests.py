#!/usr/bin/python3
"""In the VM: runs the programs that testing/machine.py listed in /out."""

import sys

from testing import machine

if __name__ == "__main__":
    sys.exit(machine.run_in_guest(*sys.argv[1:]))
