#!/usr/bin/python3
"""Tests the Debian packages in fresh minimal Debian 12 roots, by chroot: installed, upgraded, removed and purged, with
their autopkgtests. Also runs the commands of README.md for building, installing and a first program, word for word, and
builds programs in each language with each way to find the libraries."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import roots
from support import documents
from support import script

TOOLS = ("nettrace-tools", "nettraced")
OWN_SETTINGS = '[session.own]\nselect = ["Own"]\n'
# Files that may differ after a purge. Accounts remain, because files elsewhere may belong to them (debian/nettraced.postrm).
# The other files are the lock of the account files and the cache of the linker.
STAYS = {"/etc/passwd", "/etc/passwd-", "/etc/group", "/etc/group-", "/etc/shadow", "/etc/shadow-", "/etc/gshadow",
         "/etc/gshadow-", "/etc/.pwd.lock", "/etc/ld.so.cache"}


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="packages-")
        cls.addClassCleanup(folder.cleanup)
        cls.new = roots.build_packages(pathlib.Path(folder.name, "new"))
        cls.old = roots.build_packages(pathlib.Path(folder.name, "old"), "--version", roots.OLD_VERSION)

    def files(self, packages, names):
        return [packages[name] for name in names]

    def test_upgrade_keeps_settings_and_files_and_purge_leaves_what_the_administrator_wrote(self):
        with roots.fresh() as root:
            # The dependencies are not part of the test, so they are installed before.
            root.satisfy(*self.files(self.old, TOOLS))
            before = root.files()

            root.install(*self.files(self.old, TOOLS))
            self.assertIn(roots.OLD_VERSION, root.run("nettraced", "--version"))
            root.run("nettraced", "--check-config")
            self.check_accounts(root)
            settings = root.path / "etc/nettraced/nettraced.toml"
            settings.write_text(settings.read_text().replace("1G", "2G"))
            changed = settings.read_text()
            own = root.path / "etc/nettraced/own.toml"
            own.write_text(OWN_SETTINGS)
            recorded = root.path / "var/lib/nettraced/recorded.nettrace"
            recorded.parent.mkdir(exist_ok=True)
            recorded.write_text("events")

            root.install(*self.files(self.new, TOOLS))
            self.assertNotIn(roots.OLD_VERSION, root.run("nettraced", "--version"))
            self.assertEqual((settings.read_text(), own.exists(), recorded.read_text()), (changed, True, "events"))

            root.run("dpkg", "--remove", *TOOLS)
            self.assertFalse((root.path / "usr/bin/nettraced").exists())
            self.assertEqual((settings.read_text(), own.exists(), recorded.read_text()), (changed, True, "events"))
            registrations = root.path / "etc/eventheader/registrations.d/own.conf"
            registrations.parent.mkdir(parents=True)
            registrations.write_text("Own_L4K1\n")
            said = root.run("dpkg", "--purge", *TOOLS)
            for kept in (own, registrations):
                self.assertIn(f"keeping /{kept.relative_to(root.path)}, which the package did not install", said)
            self.assertEqual(said.count("keeping "), 2, said)
            self.assertIn("deleted /var/lib/nettraced; the user nettraced and the group tracing remain", said)
            self.assertIn("the group user_events remains", said)
            self.assertEqual((own.read_text(), registrations.read_text()), (OWN_SETTINGS, "Own_L4K1\n"))
            for kept in (own.parent, registrations.parents[1]):
                shutil.rmtree(kept)
            after = root.files()
        self.assertEqual({path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} - STAYS, set())

    def check_accounts(self, root):
        for name in ("tracing", "user_events", "nettraced"):
            root.run("getent", "group", name)
        self.assertIn("/var/lib/nettraced", root.run("getent", "passwd", "nettraced"))

    def test_autopkgtests(self):
        """Runs a package's tests as Debian does: with the packages installed, and the source beside them."""
        names = [name for name in self.new if not name.endswith("-dbgsym")]
        control = (roots.REPOSITORY / "debian/tests/control").read_text()
        with roots.fresh() as root:
            root.install(*self.files(self.new, names))
            shutil.copytree(roots.REPOSITORY / "debian", root.path / "source/debian")
            shutil.copytree(roots.REPOSITORY / "examples", root.path / "source/examples")
            for paragraph in control.strip().split("\n\n"):
                fields = dict(re.findall(r"^([\w-]+):((?:.|\n )*)", paragraph, flags=re.MULTILINE))
                depends = [name.strip() for name in fields["Depends"].split(",") if name.strip() != "@"]
                if depends:
                    root.install(*depends)
                for name in fields["Tests"].split():
                    with self.subTest(name):
                        self.run_autopkgtest(root, name, "skippable" in fields.get("Restrictions", ""))

    def run_autopkgtest(self, root, name, skippable):
        done = subprocess.run(["chroot", root.path, "env", "--chdir=/source", "AUTOPKGTEST_TMP=/tmp", f"debian/tests/{name}"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, script.EXIT_SKIPPED) if skippable else (0,), done.stdout + done.stderr)
        if done.returncode != 0:
            self.assertRegex(done.stdout, r"^SKIP: .+\n\Z")

    def test_two_builds_are_the_same(self):
        # Builds without ccache, so that the second build does not get the object files of the first one.
        with tempfile.TemporaryDirectory(prefix="packages-") as folder:
            again = roots.build_packages(folder, environment={
                "CCACHE_DISABLE": "1", "TZ": "Pacific/Chatham", "LC_ALL": "C", "HOME": folder})
            for name, file in self.new.items():
                self.assertEqual(file.read_bytes(), again[name].read_bytes(), name)


class ReadmeTest(unittest.TestCase):
    def test_first_program_word_for_word(self):
        blocks = documents.of_tree(roots.REPOSITORY)["README.md"]
        [program] = [block.text for block in blocks if block.marker.get("as") == "service.cc"]
        commands = "".join(block.text for block in documents.taken_by(__file__, roots.REPOSITORY))
        self.assertIn("./run build", commands)
        with roots.fresh() as root:
            checkout = root.path / "nettraced"
            listed = roots.call("git", "-c", "safe.directory=*", "-C", roots.REPOSITORY, "ls-files", "-z", "--cached", "--others",
                                "--exclude-standard").split("\0")
            for name in filter(None, listed):
                source, copy = roots.REPOSITORY / name, checkout / name
                if source.is_file():
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(source, copy)
            (checkout / "service.cc").write_text(program)
            root.run("bash", "-e", "-c", commands + "./service\nnettrace --help\n", cwd="/nettraced")
            root.install("cmake", "make")
            said = root.run("tests/package/programs.sh", cwd="/nettraced")
            self.assertTrue(said.endswith("all as it should be\n"), said)


def main():
    roots.need_root()
    script.run_cases()


if __name__ == "__main__":
    script.main(main)
