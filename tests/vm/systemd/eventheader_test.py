#!/usr/bin/python3
"""Tests `eventheader` in a system that systemd has booted: registrations at boot. Runs in a VM that has booted systemd
with the tree of lay_out.sh (./run vm --systemd --files)."""

import json
import pathlib
import subprocess
import unittest

import daemon
from support import script

EVENTHEADER = "/usr/local/bin/eventheader"
UNIT = "eventheader-register.service"
FILES = pathlib.Path("/etc/eventheader/registrations.d")


def listed(*patterns):
    done = subprocess.run([EVENTHEADER, "list", "--json", *patterns], stdout=subprocess.PIPE, text=True, check=False)
    return {entry["name"]: entry for entry in map(json.loads, done.stdout.splitlines())}


class BootTest(unittest.TestCase):
    def test_files_are_registered_before_services_start(self):
        self.assertEqual(daemon.show("Result", UNIT), "success", daemon.journal(unit=UNIT))
        self.assertEqual(daemon.show("ActiveState", UNIT), "active")
        found = listed("Boot*")
        self.assertEqual(sorted(found), ["Boot_L1K1", "Boot_L2K1", "Boot_Plain"])
        self.assertEqual(found["Boot_Plain"]["fields"], "u32 count; char[8] tag")
        registered = int(daemon.show("ActiveEnterTimestampMonotonic", UNIT))
        for unit in (daemon.UNIT, "first-event.service"):
            self.assertLess(registered, int(daemon.show("ExecMainStartTimestampMonotonic", unit)), unit)

    @script.more
    def test_reload_registers_new_definitions_and_names_wrong_ones(self):
        file = FILES / "more.conf"
        self.addCleanup(file.unlink)
        file.write_text("Boot_L1K1\nMore_L1K1\n")
        daemon.systemctl("reload", UNIT)
        self.assertEqual(sorted(listed("Boot_L*", "More*")), ["Boot_L1K1", "Boot_L2K1", "More_L1K1"])
        since = daemon.mark()
        file.write_text("Later_L1K1\nMore_L1k2\n")
        daemon.systemctl("reload", UNIT, check=False)
        daemon.until(lambda: f"{file}:2: " in daemon.journal(since, UNIT))
        self.assertEqual(listed("Later*"), {})
        file.write_text("Later_L1k1\n")
        daemon.systemctl("restart", UNIT, check=False)
        self.assertEqual(daemon.show("ExecMainStatus", UNIT), "78")
        file.write_text("\n")
        daemon.systemctl("restart", UNIT)

    def test_hold_notifies_systemd_after_registering(self):
        daemon.run("systemd-run", "--unit=held", "--service-type=notify", EVENTHEADER, "register", "--hold", "--notify",
                   "Held_L1K1")
        self.assertIn("Held_L1K1", listed())
        daemon.systemctl("stop", "held")
        daemon.until(lambda: "Held_L1K1" not in listed())

    @script.more
    def test_security(self):
        daemon.run("systemd-analyze", "security", "--no-pager", "--threshold=20", UNIT)


def doctor(*arguments):
    """Returns the findings of `eventheader doctor` as {check: problem and remedy}; {} with exit code 0."""
    done = subprocess.run([EVENTHEADER, "doctor", "--json", *arguments], stdout=subprocess.PIPE, text=True, check=False)
    found = {entry["check"]: f"{entry['problem']}; {entry['remedy']}" for entry in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == (6 if found else 0), done
    return found


class DoctorTest(unittest.TestCase):
    def test_finds_nothing_without_problems(self):
        daemon.until(lambda: not doctor())

    @script.more
    def test_a_daemon_that_does_not_run(self):
        self.addCleanup(daemon.reset)
        daemon.systemctl("stop", daemon.UNIT)
        self.assertIn("systemctl enable --now nettraced", doctor()["daemon"])
        # nettraced fails to start only if its settings have no valid session, so the other files are removed.
        for file in daemon.SETTINGS.parent.glob("*.toml"):
            self.addCleanup(file.write_text, file.read_text())
            file.unlink()
        daemon.configure("[session.wrong]\nsel = 1\n")
        daemon.systemctl("start", daemon.UNIT, check=False)
        self.assertIn("nettraced --check-config", doctor()["daemon"])

    @script.more
    def test_a_selector_that_matches_nothing(self):
        self.addCleanup(daemon.reset)
        daemon.start("[session.none]\nselect = [\"Nobody_At_All\"]\n")
        daemon.until(lambda: "Nobody_At_All" in doctor().get("selector", ""))
        daemon.run(EVENTHEADER, "register", "--quiet", "Nobody_At_All_L1K1")
        daemon.until(lambda: not doctor())
        daemon.systemctl("stop", daemon.UNIT)
        daemon.run(EVENTHEADER, "unregister", "Nobody_At_All_L1K1")

    @script.more
    def test_a_session_that_is_stopped(self):
        self.addCleanup(daemon.reset)
        daemon.run(daemon.NETTRACE, "ctl", "stop", "boot")
        self.assertIn("nettrace ctl start boot", doctor()["sessions"])

    @script.more
    def test_a_unit_that_hardens_itself(self):
        unit = "sandboxed.service"
        self.addCleanup(lambda: daemon.systemctl("stop", unit, check=False))
        hardened = ["--unit=sandboxed", "-p", "ProtectKernelTunables=yes", "-p", "DynamicUser=yes", "-p",
                    "SupplementaryGroups=user_events"]
        daemon.run("systemd-run", *hardened, "sleep", "1000")
        daemon.until(lambda: daemon.show("MainPID", unit) != "0" and "sandbox" in doctor("--for", unit))
        self.assertIn("ReadWritePaths=-/sys/kernel/tracing/user_events_data", doctor("--for", "sandboxed")["sandbox"])
        daemon.systemctl("stop", unit)
        daemon.run("systemd-run", *hardened, "-p", "ReadWritePaths=/sys/kernel/tracing/user_events_data", EVENTHEADER,
                   "register", "--hold", "Sandboxed_L1K1")
        daemon.until(lambda: listed("Sandboxed*"))
        self.assertEqual(doctor("--for", unit), {})

    @script.more
    def test_a_unit_that_does_not_run_yet(self):
        self.assertEqual(doctor("--for", "hardened-event"), {})
        file = pathlib.Path("/run/systemd/system/later.service")
        file.write_text("[Service]\nProtectKernelTunables=yes\nExecStart=true\n")
        self.addCleanup(file.unlink)
        daemon.systemctl("daemon-reload")
        self.assertIn("systemctl edit later.service", doctor("--for", "later.service")["sandbox"])

    @script.more
    def test_users(self):
        daemon.as_user("stranger")
        self.assertIn("usermod -aG user_events stranger", doctor("--for", "stranger")["permission"])
        daemon.run("usermod", "-aG", "user_events", "stranger")
        self.assertEqual(doctor("--for", "stranger"), {})


if __name__ == "__main__":
    script.run_cases()
