"""Shared libraries that tests load into their own process."""

import pathlib
import sys

from support import script


def _architecture(file):
    """Returns the class, byte order and machine in an ELF file's header."""
    header = pathlib.Path(file).read_bytes()[:20]
    return header[4:6] + header[18:20]


def need_own_architecture(library):
    """Skips the test if this process cannot load the library."""
    if _architecture(library) != _architecture(sys.executable):
        raise script.Skipped("the library is for another architecture than this Python")
