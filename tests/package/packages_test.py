#!/usr/bin/python3
"""Tests the Debian packages that `./run package` builds: lintian finds nothing, and their contents and dependencies are
the intended ones. Installs nothing."""

import re
import subprocess
import tempfile
import unittest

import roots
from support import script


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="packages-")
        cls.addClassCleanup(folder.cleanup)
        before = checkout()
        cls.packages = roots.build_packages(folder.name, environment=roots.QUICK)
        cls.changed = checkout() ^ before

    def paths(self, package):
        listed = roots.call("dpkg-deb", "--contents", self.packages[package]).splitlines()
        return {line.split(maxsplit=5)[5].split(" -> ")[0].lstrip(".") for line in listed}

    def field(self, package, name):
        return roots.call("dpkg-deb", "--field", self.packages[package], name).strip()

    def test_builds_the_expected_packages(self):
        self.assertEqual({name for name in self.packages if not name.endswith("-dbgsym")},
                         {"libeventheader0", "libeventheader-dev", "libnettrace0", "libnettrace-dev", "nettrace-tools", "nettraced",
                          "python3-eventheader", "eventheader-doc"})

    def test_checkout_is_unchanged(self):
        self.assertEqual(self.changed, set())

    def test_version_is_the_libraries(self):
        version = self.field("libnettrace0", "Version")
        self.assertTrue(any(path.endswith(f"/libnettrace.so.{version}") for path in self.paths("libnettrace0")))

    def test_every_program_and_file_format_has_a_page(self):
        for package in ("nettrace-tools", "nettraced"):
            paths = self.paths(package)
            programs = {path.removeprefix("/usr/bin/") for path in paths if re.fullmatch("/usr/bin/.+", path)}
            self.assertTrue(programs)
            for name in programs:
                self.assertTrue({f"/usr/share/man/man{section}/{name}.{section}.gz" for section in (1, 8)} & paths, name)
        self.assertIn("/usr/share/man/man5/nettrace.5.gz", self.paths("nettrace-tools"))
        self.assertIn("/usr/share/man/man5/nettraced.toml.5.gz", self.paths("nettraced"))

    def test_documents_that_pages_name_are_there(self):
        there = self.paths("eventheader-doc") | self.paths("nettraced")
        for page in (roots.REPOSITORY / "docs/man").iterdir():
            for document in re.findall(r"/usr/share/doc/\S+", page.read_text()):
                self.assertIn(document, there, page.name)

    def test_every_document_and_page_is_on_the_site(self):
        there = self.paths("eventheader-doc")
        for name in ("index", "contents", "contributing", "guides/instrumenting", "man/nettrace.1", "man/nettraced.8"):
            self.assertIn(f"/usr/share/doc/nettraced/html/{name}.html", there)
        for document in (roots.REPOSITORY / "docs").rglob("*.md"):
            self.assertIn(f"/usr/share/doc/nettraced/{document.relative_to(roots.REPOSITORY / 'docs')}", there)

    def test_settings_are_conffiles(self):
        listed = subprocess.run(["dpkg-deb", "--info", self.packages["nettraced"], "conffiles"], capture_output=True, text=True,
                                check=True).stdout
        self.assertEqual(listed.split(), ["/etc/nettraced/nettraced.toml"])

    def test_units_have_what_they_need(self):
        self.assertLessEqual({"/lib/systemd/system/nettraced.service", "/lib/systemd/system/nettraced.socket",
                              "/lib/systemd/system/nettrace-ship.service",
                              "/usr/lib/sysusers.d/nettraced.conf"},
                             self.paths("nettraced"))
        self.assertLessEqual({"/lib/systemd/system/eventheader-register.service",
                              "/lib/systemd/system/sys-kernel-tracing.mount.d/user_events.conf",
                              "/usr/lib/sysusers.d/user_events.conf", "/usr/lib/tmpfiles.d/user_events.conf"},
                             self.paths("nettrace-tools"))
        self.assertIn(f"nettrace-tools (= {self.field('nettraced', 'Version')})", self.field("nettraced", "Depends"))

    def test_module_of_python_needs_the_library_and_nothing_that_is_compiled(self):
        self.assertIn("/usr/lib/python3/dist-packages/eventheader.py", self.paths("python3-eventheader"))
        self.assertIn("libeventheader0 (>= ", self.field("python3-eventheader", "Depends"))
        self.assertEqual(self.field("python3-eventheader", "Architecture"), "all")

    def test_libraries_depend_on_the_shared_ones_they_use(self):
        self.assertNotIn("libabsl", self.field("libeventheader0", "Depends"))
        self.assertIn("libabsl", self.field("libnettrace0", "Depends"))
        self.assertIn("libabsl-dev", self.field("libnettrace-dev", "Depends"))
        version = self.field("libnettrace0", "Version")
        for name in ("libnettrace", "libeventheader"):
            self.assertIn(f"{name}0 (= {version})", self.field(f"{name}-dev", "Depends"))


def checkout():
    """Returns what git reports as changed or new."""
    return set(roots.call("git", "-c", "safe.directory=*", "-C", roots.REPOSITORY, "status", "--porcelain").splitlines())


if __name__ == "__main__":
    script.run_cases()
