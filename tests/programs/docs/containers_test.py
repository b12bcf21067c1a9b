#!/usr/bin/python3
"""Tests that the files for containers in docs/guides/containers.md agree with the packages, the unit and the defaults."""

import re
import textwrap
import tomllib
import unittest

from support import documents
from support import script

SOURCE = script.options(__doc__, "source").source

[DOCKERFILE] = [block.text for block in documents.taken_by(__file__, SOURCE) if block.language == "dockerfile"]
OBJECTS, POD, POD_WITH_SOCKET = [block.text for block in documents.taken_by(__file__, SOURCE) if block.language == "yaml"]


def read(path):
    return (SOURCE / path).read_text(encoding="utf-8")


def names(text, key):
    """Returns the names in the lists below a key, such as volumeMounts."""
    lists = re.findall(rf"^( *){key}:\n((?:\1 .*\n)+)", text, re.MULTILINE)
    return {name for _, body in lists for name in re.findall(r"- name: (\S+)", body)}


class DockerfileTest(unittest.TestCase):
    def test_packages_are_built(self):
        packages = set(re.findall(r"^Package: (\S+)$", read("debian/control"), re.MULTILINE))
        named = set(re.findall(r"dist/([\w-]+)_\*\.deb", DOCKERFILE))
        self.assertEqual(len(named), 2)
        self.assertLessEqual(named, packages)

    def test_program_is_installed(self):
        [program] = re.findall(r'^ENTRYPOINT \["(\w+)"\]$', DOCKERFILE, re.MULTILINE)
        self.assertIn(f"usr/bin/{program}", read("debian/nettraced.install"))


class ObjectsTest(unittest.TestCase):
    def test_indentation_is_that_of_yaml(self):
        for text in (OBJECTS, POD, POD_WITH_SOCKET):
            self.assertNotIn("\t", text)
            self.assertEqual({(len(line) - len(line.lstrip())) % 2 for line in text.splitlines()}, {0})

    def test_volumes_are_defined_and_mounted(self):
        for text in (OBJECTS, POD, POD_WITH_SOCKET):
            self.assertTrue(names(text, "volumes"))
            self.assertEqual(names(text, "volumeMounts"), names(text, "volumes"))

    def test_directory_of_the_socket_is_shared(self):
        """Tests that the DaemonSet mounts the folder of the socket, and that a pod mounts only its subfolder `services`. Both
        must mount it at the path in which the library looks for the socket."""
        socket = re.search(r'kSystemSocket\[\] = "(.*)/events"', read("libeventheader/base/ring_layout.h"))[1]
        for text, path in ((OBJECTS, socket), (POD_WITH_SOCKET, f"{socket}/services")):
            self.assertIn(f" path: {path}\n", text)
            self.assertIn(f"mountPath: {socket}\n", text)
        self.assertIn(f"ListenSequentialPacket={socket}/services/events\nSymlinks={socket}/events\n",
                      read("tools/nettraced/systemd/nettraced.socket"))

    def test_capabilities_are_those_of_the_unit(self):
        service = read("tools/nettraced/systemd/nettraced.service.in")
        [unit] = re.findall(r"^AmbientCapabilities=(.*)$", service, re.MULTILINE)
        wanted = {name.removeprefix("CAP_") for name in unit.split()}
        added = [set(found.split(", ")) for found in re.findall(r"add: \[(.*)\]", OBJECTS)]
        self.assertEqual(added, [{"CHOWN"}, wanted | {"IPC_LOCK"}])

    def test_directories_are_the_defaults(self):
        parser = read("tools/nettraced/config/settings_parser.cc")
        for directory in ("/var/lib/nettraced", "/run/nettraced"):
            self.assertIn(f'"\\"{directory}\\""', parser)
            self.assertIn(f"mountPath: {directory}\n", OBJECTS)
        self.assertIn("hostPID: true\n", OBJECTS)

    def test_modes_are_those_of_tmpfiles(self):
        for path, mode in re.findall(r"^z (\S+) (\d+) ", read("tools/eventheader/systemd/tmpfiles.conf"), re.MULTILINE):
            self.assertIn(f"chmod {mode} {path.replace('/sys/kernel', '')}\n", OBJECTS)

    def test_group_is_the_same(self):
        [group] = re.findall(r"chgrp (\d+) ", OBJECTS)
        self.assertIn(f"supplementalGroups: [{group}]", POD)

    def test_settings_are_toml(self):
        [text] = re.findall(r"^  nettraced\.toml: \|\n((?:    .*\n|\n)+)", OBJECTS, re.MULTILINE)
        settings = tomllib.loads(textwrap.dedent(text))
        self.assertEqual(settings["daemon"], {"look_group": ""})
        self.assertTrue(all("select" in session for session in settings["session"].values()))


if __name__ == "__main__":
    script.run_cases()
