#!/usr/bin/python3
"""Tests the packages in a fresh root under systemd, in the VM. The installation starts nettraced, nettraced records a
service that runs as a separate user, and it continues with its settings and files after an upgrade. A purge deletes the
settings, the recorded files and the units."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

import roots
from support import script

ARGS = script.options(__doc__, "service")
PACKAGES = ("nettrace-tools", "nettraced")
INSIDE = pathlib.Path(__file__).with_name("inside.sh")


class SystemdTest(unittest.TestCase):
    def test_from_installation_to_purge(self):
        with tempfile.TemporaryDirectory(prefix="packages-", dir="/var/tmp") as folder, roots.fresh() as root:
            out = pathlib.Path(folder)
            for name, options in (("old", ("--version", roots.OLD_VERSION)), ("new", ())):
                built = roots.build_packages(out / "built" / name, *options)
                (out / name).mkdir()
                for package in PACKAGES:
                    shutil.copy(built[package], out / name)
            # Installs the dependencies, which needs the network; the packages themselves are installed in the VM.
            root.satisfy(*(built[package] for package in PACKAGES))
            (root.path / "usr/sbin/policy-rc.d").unlink()
            shutil.copy(ARGS.service, root.path / "usr/local/bin/example-service")
            shutil.copy(INSIDE, out)
            done = subprocess.run(
                [roots.REPOSITORY / "scripts/vm.py", "--systemd", "--root", root.path, "--out", out, "--cpus", "2", "--timeout", "3000",
                 "--", "/out/inside.sh"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue(done.stdout.endswith("all as it should be\n"), done.stdout)


def main():
    roots.need_root()
    script.run_cases()


if __name__ == "__main__":
    script.main(main)
