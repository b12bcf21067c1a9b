"""Tests ./run vm: status, output and files of a command, and every way in which it can fail."""

import functools
import pathlib
import subprocess
import tempfile
import time
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def vm(*arguments, script):
    """Runs a script in the VM. Returns its exit status, stdout, stderr, and the files that were in /out."""
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [REPOSITORY / "run", "vm", "--out", out, *arguments, "--", "bash", "-c", script, "guest", "two words"],
            cwd=REPOSITORY, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        files = {path.name: path.read_bytes() for path in pathlib.Path(out).iterdir()}
    return done.returncode, done.stdout, done.stderr, files


@functools.cache
def status_output_and_files():
    """Returns the result of vm() for a command with a status, output and files, and the seconds that it took, most of
    them for the boot."""
    began = time.monotonic()
    done = vm("--cpus", "2", script=r"""
        printf 'a\0b\r\n'; head -c 300000 /dev/zero; printf ' no newline'
        echo to stderr >/dev/stderr
        printf '%s|%s|%s|' "$1" "$(pwd)" "$(nproc)" >/out/facts
        test -e /sys/kernel/tracing/user_events_data && echo user_events >>/out/facts
        echo changed >README.md
        exit 42""")
    return *done, time.monotonic() - began


class Vm(unittest.TestCase):
    """Boots four machines; each boot takes 10 s or more."""

    def test_status_output_and_files_come_out_as_they_were(self):
        status, stdout, stderr, files, _ = status_output_and_files()
        self.assertEqual(status, 42, stderr)
        self.assertEqual(stdout, b"a\0b\r\n" + bytes(300000) + b" no newline")
        self.assertEqual(stderr, b"to stderr\n")
        self.assertEqual(files["facts"].decode(), f"two words|{REPOSITORY}|2|user_events\n")
        self.assertNotEqual((REPOSITORY / "README.md").read_text(), "changed\n")

    def test_a_hang_is_124(self):
        *_, seconds = status_output_and_files()
        limit = str(5 + round(2 * seconds))  # includes the time to boot
        status, stdout, stderr, _ = vm("--timeout", limit, script="echo before; sleep 1000")
        self.assertEqual((status, stdout), (124, b"before\n"))
        self.assertIn(f"did not end within {limit} s".encode(), stderr)

    def test_icount_counts_the_same_each_time_and_a_panic_is_125_with_the_output_and_the_console(self):
        # Measures a loop three times by the clock, which must count nearly the same instructions each time. The first
        # result is ignored, because that loop fills caches.
        status, stdout, stderr, _ = vm("--icount", script="""
            for i in 1 2 3; do
              begin=${EPOCHREALTIME/./}; for ((n = 0; n < 2000; n++)); do :; done; echo $((${EPOCHREALTIME/./} - begin))
            done
            sleep 1; echo c >/proc/sysrq-trigger; sleep 60""")
        self.assertEqual(status, 125, stderr)
        self.assertIn(b"Kernel panic", stderr)
        _, second, third = map(int, stdout.split())
        self.assertLess(abs(second - third), max(second, third) * 0.05)

    def test_systemd_boots_with_the_files_that_are_laid_over_the_root(self):
        with tempfile.TemporaryDirectory() as files:
            units = pathlib.Path(files) / "etc/systemd/system"
            (units / "vm.target.wants").mkdir(parents=True)
            (units / "hello.service").write_text("[Service]\nType=oneshot\nExecStart=echo hello\n")
            # A link, because systemd ignores files that are not links.
            (units / "vm.target.wants/hello.service").symlink_to("../hello.service")
            status, stdout, stderr, _ = vm("--systemd", "--files", files, "--cpus", "2", script="""
                systemctl is-system-running --wait
                journalctl --sync
                journalctl --unit hello.service --output cat | grep '^hello$'
                mountpoint /sys/kernel/tracing
                exit 42""")
        self.assertEqual(status, 42, stderr)
        self.assertEqual(stdout, b"running\nhello\n/sys/kernel/tracing is a mountpoint\n")

    def test_an_invalid_root_is_wrong_usage(self):
        with tempfile.TemporaryDirectory() as folder:
            status, _, stderr, _ = vm("--root", folder, script="true")
        self.assertEqual(status, 2)
        self.assertIn(f"--root: {folder} is not the root".encode(), stderr)

    def test_a_kernel_that_is_not_there_is_125_and_named(self):
        done = subprocess.run(
            ["env", "EVENTHEADER_VM_KERNEL=/no/kernel", REPOSITORY / "run", "vm", "--", "true"],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 125)
        self.assertIn("/no/kernel", done.stderr)
