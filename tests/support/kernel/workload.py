#!/usr/bin/python3
"""A workload that hits many tracepoints of the kernel: processes and threads, memory, files, sockets, timers and
signals. Parts that the machine does not permit are skipped.

    workload.py FOLDER TIMES

At the end it writes the monotonic times of its start and its end to TIMES, in ns."""

import ctypes
import fcntl
import mmap
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_NAME = 15
THREAD_NAME = "wörk-1"


def threads():
    LIBC.prctl(PR_SET_NAME, THREAD_NAME.encode(), 0, 0, 0)
    # A name has at most 15 bytes, so the kernel cuts this one within a character.
    LIBC.prctl(PR_SET_NAME, "é".encode() * 8, 0, 0, 0)
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, 0, 5)
    lock = threading.Lock()

    def work():
        for _ in range(20):
            with lock:
                time.sleep(0.0005)
            os.sched_yield()

    started = [threading.Thread(target=work) for _ in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def processes():
    for _ in range(3):
        subprocess.run(["/bin/true"], check=True)
        pid = os.fork()
        if pid == 0:
            os._exit(3)
        os.waitpid(pid, 0)
    sleeper = subprocess.Popen(["/bin/sleep", "60"])
    os.kill(sleeper.pid, signal.SIGSTOP)
    os.kill(sleeper.pid, signal.SIGCONT)
    sleeper.kill()
    sleeper.wait()


def signals():
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    time.sleep(0.01)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGUSR2)


def memory():
    size = 8 << 20
    area = mmap.mmap(-1, size)
    area.madvise(mmap.MADV_HUGEPAGE)
    for at in range(0, size, mmap.PAGESIZE):
        area[at] = 1
    area.madvise(mmap.MADV_DONTNEED)
    area.close()
    LIBC.mlockall(1)
    LIBC.munlockall()


def files(folder):
    for number in range(6):
        path = folder / f"file-{number}-ö"
        path.write_bytes(b"x" * 300_000)
        with open(path, "r+b") as file:
            os.fsync(file.fileno())
            os.posix_fallocate(file.fileno(), 400_000, 100_000)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            os.pread(file.fileno(), 100_000, 0)
            fcntl.flock(file, fcntl.LOCK_EX)
            fcntl.lockf(file, fcntl.LOCK_EX)
            with mmap.mmap(file.fileno(), 100_000) as mapped:
                mapped[5000] = 7
                mapped.flush()
            file.truncate(1000)
        os.chmod(path, 0o640)
        os.utime(path)
        try:
            os.setxattr(path, "user.note", b"value")
        except OSError:
            pass
        os.link(path, folder / f"link-{number}")
        os.rename(path, folder / f"moved-{number}")
        os.symlink("x", folder / f"symlink-{number}")
        os.stat(folder / f"moved-{number}")
    with open(folder / "direct", "wb") as file:
        file.write(bytes(1 << 20))
        os.fsync(file.fileno())
    handle = os.open(folder / "direct", os.O_RDWR | os.O_DIRECT)
    block = mmap.mmap(-1, 65536)
    os.readv(handle, [block])
    os.pwritev(handle, [block], 0)
    os.close(handle)
    os.sync()
    for path in folder.iterdir():
        path.unlink()
    (folder / "inner").mkdir()
    (folder / "inner").rmdir()


def exchange(listener, client_kind):
    client = socket.socket(listener.family, client_kind)
    client.connect(listener.getsockname())
    server, _ = listener.accept()
    for _ in range(5):
        client.sendall(b"x" * 5000)
        server.recv(10000)
        server.sendall(b"y" * 100)
        client.recv(1000)
    client.shutdown(socket.SHUT_WR)
    server.recv(100_000)
    server.close()
    client.close()


def sockets(folder):
    for family, address in ((socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0))):
        try:
            with socket.socket(family) as listener:
                listener.bind(address)
                listener.listen()
                exchange(listener, socket.SOCK_STREAM)
                name = listener.getsockname()
            # The listening socket is closed, so the connection is refused.
            with socket.socket(family) as client:
                client.connect_ex(name)
            with socket.socket(family, socket.SOCK_DGRAM) as one, socket.socket(family, socket.SOCK_DGRAM) as other:
                one.bind(address)
                other.connect(one.getsockname())
                for _ in range(5):
                    other.send(b"datagram")
                    one.recv(100)
        except OSError:
            pass
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen()
        exchange(listener, socket.SOCK_STREAM)
    (folder / "socket").unlink()


def waiting():
    reader, writer = os.pipe()
    with select.epoll() as epoll:
        epoll.register(reader, select.EPOLLIN)
        os.write(writer, b"x")
        epoll.poll(1)
        select.poll().poll(1)
        select.select([reader], [], [], 0)
    os.close(reader)
    os.close(writer)


def network():
    """Makes a separate network with a neighbour, and sends a ping to itself."""
    subprocess.run(["unshare", "-n", "sh", "-c",
                    "ip link set lo up; ip link add a type veth peer name b; ip addr add 10.9.8.1/24 dev a; "
                    "ip link set a up; ip link set b up; ip neigh add 10.9.8.2 lladdr 02:00:00:00:00:01 dev a; "
                    "ip neigh; ip route get 10.9.8.2; ping -c 1 -W 1 127.0.0.1"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def main():
    folder = pathlib.Path(sys.argv[1]) / "work"
    folder.mkdir(exist_ok=True)
    start = time.monotonic_ns()
    for part in (processes, signals, memory, waiting, network):
        part()
    files(folder)
    sockets(folder)
    threads()
    pathlib.Path(sys.argv[2]).write_text(f"{start} {time.monotonic_ns()}")


if __name__ == "__main__":
    main()
