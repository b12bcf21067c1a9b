"""Stops one thread of a process, as a disk that hangs would. The other threads continue."""

import contextlib
import ctypes
import os
import pathlib
import time

_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17  # ptrace(2)
_WALL = 0x40000000  # waitpid(2): includes threads
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request, tid):
    if _libc.ptrace(request, tid, None, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _ids(pid, name):
    ids = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # The thread has ended.
            if (task / "comm").read_text().strip() == name:
                ids.append(int(task.name))
    return ids


def exists(pid, name):
    """Returns whether the process has a thread with this name."""
    return bool(_ids(pid, name))


def find(pid, name):
    """Returns the id of the thread with this name."""
    [tid] = _ids(pid, name)
    return tid


@contextlib.contextmanager
def stopped(pid, name):
    """Stops the thread while the context is active, unless the process is killed. The thread that entered the context
    must leave it."""
    tid = find(pid, name)
    _ptrace(_SEIZE, tid)
    _ptrace(_INTERRUPT, tid)
    os.waitpid(tid, _WALL)
    try:
        yield
    finally:
        # If the process was killed, its thread must be waited for here, or the process remains a zombie.
        with contextlib.suppress(ProcessLookupError):
            _ptrace(_DETACH, tid)
        with contextlib.suppress(ChildProcessError):
            end = time.monotonic() + 5
            while os.waitpid(tid, _WALL | os.WNOHANG) == (0, 0) and time.monotonic() < end:
                time.sleep(0.05)
