"""Serves one executable file by FUSE, and can stop answering, as the file system of a hostile user may. Needs root."""

import ctypes
import errno
import os
import struct
import subprocess
import threading
import unittest

_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _INIT, _INTERRUPT, _BATCH_FORGET = 1, 2, 3, 14, 15, 26, 36, 42
_ROOT, _FILE = 1, 2
_IN_HEADER = struct.Struct("<IIQQIIIHH")
_MS_NOSUID_NODEV = 2 | 4


class FuseFile:
    """A file system with one file, `name`. It is mounted while its context is active. Skips the test if FUSE is not
    available."""

    def __init__(self, folder, name, contents):
        self.path, self._folder, self._name, self._contents = folder / name, folder, name, contents
        self._answers = threading.Event()
        self._answers.set()
        self.waiting = 0  # number of accesses since stop_answering

    def __enter__(self):
        try:
            self._device = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            raise unittest.SkipTest(f"/dev/fuse cannot be opened: {error}") from error
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"fuse", os.fsencode(self._folder), b"fuse", ctypes.c_ulong(_MS_NOSUID_NODEV), options) != 0:
            error = os.strerror(ctypes.get_errno())
            os.close(self._device)
            raise unittest.SkipTest(f"FUSE cannot be mounted: {error}")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def stop_answering(self):
        """Makes each further access wait for a second, and counts it. A hostile server would never answer."""
        self._answers.clear()

    def answer(self):
        """Answers accesses at once again, after stop_answering."""
        self._answers.set()

    def __exit__(self, *_):
        self._answers.set()
        subprocess.run(["umount", "-l", self._folder], check=True)
        self._thread.join(20)
        os.close(self._device)

    def _attributes(self, node):
        mode, size = (0o40755, 0) if node == _ROOT else (0o100755, len(self._contents))
        return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def _answer(self, opcode, node, body):
        """Returns the error and the data of the answer to a request. The time limits in the answer are 0, so that the
        kernel caches neither attributes nor names."""
        if opcode == _INIT:
            major, minor, ahead, _ = struct.unpack_from("<4I", body)
            return 0, struct.pack("<4IHHIIHHI7I", major, min(minor, 31), ahead, 0, 16, 12, 4096, 1, 1, 0, 0, *[0] * 7)
        if opcode == _LOOKUP:
            if body.rstrip(b"\0").decode() != self._name:
                return -errno.ENOENT, b""
            return 0, struct.pack("<4Q2I", _FILE, 0, 0, 0, 0, 0) + self._attributes(_FILE)
        if opcode == _GETATTR:
            return 0, struct.pack("<Q2I", 0, 0, 0) + self._attributes(node)
        if opcode == _OPEN:
            return 0, struct.pack("<QIi", 0, 0, 0)
        if opcode == _READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return 0, self._contents[offset:offset + size]
        return -errno.ENOSYS, b""

    def _serve(self):
        while True:
            try:
                request = os.read(self._device, 1 << 17)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                return  # unmounted
            _, opcode, unique, node, *_ = _IN_HEADER.unpack_from(request)
            if opcode in (_FORGET, _BATCH_FORGET, _INTERRUPT):
                continue
            if not self._answers.wait(0):
                self.waiting += 1
                self._answers.wait(1)
            error, data = self._answer(opcode, node, request[_IN_HEADER.size:])
            try:
                os.write(self._device, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
            except OSError:
                pass  # the access was interrupted
