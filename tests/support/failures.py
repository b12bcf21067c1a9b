"""Environments in which programs fail, and the check of every failure: a specific exit status, and one line that names
the problem and the remedy."""

import os
import subprocess

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
# Runs a command in a separate mount namespace without tracefs.
WITHOUT_TRACEFS = ["unshare", "--mount", "sh", "-c",
                   "umount --all --lazy --types tracefs,debugfs; exec \"$@\"", "sh"]


def check_failure(test, command, pattern, status=1, stdout=subprocess.DEVNULL):
    """Checks that `command` ends with `status` and one line on stderr, which `pattern` matches. `test` is the
    unittest.TestCase that fails otherwise."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True,
                          timeout=120, check=False)
    said = f"exit status {done.returncode}, stderr:\n{done.stderr}"
    test.assertEqual(done.returncode, status, said)
    test.assertEqual(done.stderr.count("\n"), 1, said)
    test.assertTrue(done.stderr.endswith("\n"), said)
    test.assertRegex(done.stderr, pattern)


def has_user_events():
    return os.path.exists("/sys/kernel/tracing/user_events_data")
