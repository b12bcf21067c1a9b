#!/usr/bin/python3
"""Tests that each bridge header, if the headers of its logger are not installed, fails to compile with one error that
names what is missing."""

import pathlib
import re
import shlex
import subprocess
import unittest

from support import script

ARGS = script.options(__doc__, "include", "cxx")

# A logger's header is missing if a macro takes the place of __has_include.
MISSING = "#define __has_include(header) 0\n"
NEEDED = {"spdlog": "libspdlog-dev", "glog": "libgoogle-glog-dev", "boost_log": "libboost-log-dev", "absl_log": "abseil 20230125",
          "opentelemetry": "opentelemetry-cpp"}


class WithoutLoggersTest(unittest.TestCase):
    def test_header_is_one_error_that_names_what_it_needs(self):
        bridges = {path.stem for path in pathlib.Path(ARGS.include, "eventheader/bridges").glob("*.h")} - {"log_sets"}
        self.assertEqual(bridges, set(NEEDED))
        for bridge, needed in NEEDED.items():
            with self.subTest(bridge):
                done = subprocess.run(
                    [*shlex.split(str(ARGS.cxx)), "-std=c++20", "-fsyntax-only", "-w", "-I", ARGS.include, "-x", "c++", "-"],
                    input=f"{MISSING}#include <eventheader/bridges/{bridge}.h>\n", capture_output=True, text=True, check=False)
                [error] = re.findall(r"^.*error:.*$", done.stderr, flags=re.MULTILINE)
                self.assertIn(f"eventheader/bridges/{bridge}.h needs", error)
                self.assertIn(needed, error)


if __name__ == "__main__":
    script.run_cases()
