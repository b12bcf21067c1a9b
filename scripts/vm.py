#!/usr/bin/python3
"""Runs a command in a virtual machine whose kernel has user_events.

The machine's root is the root file system of this machine, under an overlay in memory. Everything that is installed
here is available, and all changes are discarded afterwards, except in /out, which is --out on the host. The command
runs as root in the current folder; its stdout, stderr and exit status are passed on. Without a command, an interactive
shell runs. With --systemd, systemd boots first. It mounts tracefs, and starts only the journal and the services that
create the users and files of packages. With --root, the root is a folder that debootstrap or mmdebstrap has made, for
example, and the command runs in /.

examples:
  ./run vm -- uname -a
  ./run vm --cpus 1 -- build/bin/eventheader list
  ./run vm -- sh -c 'build/bin/nettrace record -o /out/all.nettrace -e Example --duration 2s'
  ./run vm --icount -- perf-like-program      # 1 ns of the guest's clock = 1 instruction
  ./run vm --systemd -- systemd-run --wait true
  ./run vm                                    # a shell

exit status: that of the command; 124 if it did not end within --timeout; 125 if the machine could not be started or
went down (the reason is on stderr).
"""

import argparse
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
INIT = REPOSITORY / "tests/vm/init.sh"
QEMU = "qemu-system-x86_64"

HOST_ROOT = pathlib.Path("/")

EXIT_TIMEOUT = 124
EXIT_MACHINE = 125

# Only these variables of the caller are passed to the guest, so that a run is the same everywhere.
PASSED_ON = ("CI", "SHARED_DIR", "TERM", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")
PASSED_ON_PREFIXES = ("GTEST_",)


class MachineError(Exception):
    """A failure of the machine, not of the command."""


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "nettraced"


def kernel_image():
    """Returns the path of the kernel image. Builds the kernel if there is none yet, which takes minutes."""
    built = subprocess.run(
        [REPOSITORY / "scripts/kernel_image.sh"], stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        raise MachineError("there is no kernel image; the reason is printed above")
    return built.stdout.strip()


def kvm_works(kernel):
    """Returns whether a kernel under KVM boots far enough to panic because it has no root file system.

    Being able to open /dev/kvm is not enough: with broken nested virtualization, a guest never starts. The result is
    cached until the host is rebooted.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    verdict = cache_folder() / f"kvm-{boot_id}"
    if verdict.exists():
        return verdict.read_text() == "yes"
    works = kvm_boots(kernel)
    with contextlib.suppress(OSError):
        verdict.parent.mkdir(parents=True, exist_ok=True)
        verdict.write_text("yes" if works else "no")
    return works


def kvm_boots(kernel):
    command = [QEMU, "-accel", "kvm", "-cpu", "host", "-m", "256M", "-nodefaults", "-display", "none",
               "-no-reboot", "-kernel", kernel, "-append", "panic=-1"]
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=30, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def accelerator(kernel, icount):
    if icount:
        return ["-accel", "tcg", "-icount", "shift=0,sleep=off"]
    if kvm_works(kernel):
        return ["-accel", "kvm", "-cpu", "host"]
    # The sanitizers need instructions that QEMU's default processor does not have.
    return ["-accel", "tcg,thread=multi", "-cpu", "Nehalem"]


def share(tag, path, options):
    # QEMU's driver for local file systems splits its options at commas; two commas mean one comma in a value.
    escaped = str(path).replace(",", ",,")
    return ["-fsdev", f"local,id={tag},path={escaped},security_model=none,{options}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def qemu_command(args, kernel, control):
    root_flags = "trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro"
    # no_timer_check: on a very busy host, the emulated timer may be late when the kernel checks it, and the kernel would
    # panic.
    command = [QEMU, *accelerator(kernel, args.icount), "-m", args.memory, "-smp", str(args.cpus),
               "-nodefaults", "-display", "none", "-no-reboot", "-kernel", kernel,
               "-device", "virtio-rng-pci",
               "-serial", f"file:{control}/console",
               *share("root", "/", "readonly=on,multidevs=remap"),
               *share("control", control, "multidevs=remap"),
               *share("out", args.out, "multidevs=remap"),
               "-append", f"console=ttyS0 quiet panic=-1 no_timer_check root=root rootfstype=9p "
                          f"rootflags={root_flags} init=\"{INIT}\" -- \"{args.root}\""]
    if args.tty:
        command += ["-device", "virtio-serial-pci", "-chardev", "stdio,id=tty,signal=off",
                    "-device", "virtconsole,chardev=tty"]
    return command


def guest_environment(extra):
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                   "HOME": "/root", "USER": "root", "LOGNAME": "root", "LANG": "C.UTF-8"}
    for name, value in os.environ.items():
        if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES):
            environment[name] = value
    for setting in extra:
        name, equals, value = setting.partition("=")
        environment[name] = value if equals else os.environ.get(name, "")
    return environment


def write_strings(path, strings):
    path.write_bytes(b"".join(os.fsencode(s) + b"\0" for s in strings))


def prepare_control(control, args):
    write_strings(control / "argv", args.command)
    write_strings(control / "env", [f"{n}={v}" for n, v in guest_environment(args.env).items()])
    (control / "cwd").write_text(os.getcwd() if args.root == HOST_ROOT else "/")
    for name in ("stdout", "stderr", "console", *(["systemd"] if args.systemd else [])):
        (control / name).touch()
    if args.files:
        shutil.copytree(args.files, control / "files", symlinks=True)
    if args.tty:
        columns, rows = os.get_terminal_size()
        (control / "tty").write_text(f"{rows} {columns}\n")


def die_with_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Relay:
    """Passes on the data that is appended to a file."""

    def __init__(self, path, destination):
        self._source = open(path, "rb", buffering=0)
        self._destination = destination

    def pump(self):
        while chunk := self._source.read(1 << 20):
            self._destination.write(chunk)
            self._destination.flush()


def console_tail(control, lines=25):
    text = (control / "console").read_text(errors="replace")
    return "\n".join("  | " + line for line in text.splitlines()[-lines:])


def wait_for_status(qemu, control, timeout):
    relays = [Relay(control / "stdout", sys.stdout.buffer), Relay(control / "stderr", sys.stderr.buffer)]
    status = control / "status"
    deadline = time.monotonic() + timeout if timeout else None
    while True:
        # The status is checked before the relays run, so that they pass on all data that was written before the status.
        finished, gone = status.exists(), qemu.poll() is not None
        for relay in relays:
            relay.pump()
        if finished:
            return int(status.read_text())
        if gone:
            raise MachineError("the machine stopped before the command ended; its console printed:\n"
                               + console_tail(control))
        if deadline and time.monotonic() > deadline:
            print(f"vm: the command did not end within {timeout:g} s (--timeout); its console printed:\n"
                  + console_tail(control), file=sys.stderr)
            return EXIT_TIMEOUT
        time.sleep(0.02)


def run(args):
    if not shutil.which(QEMU):
        raise MachineError(f"{QEMU} is not installed (Debian package qemu-system-x86)")
    kernel = kernel_image()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="nettraced-vm-") as folder:
        control = pathlib.Path(folder)
        prepare_control(control, args)
        qemu = subprocess.Popen(
            qemu_command(args, kernel, control), stdin=None if args.tty else subprocess.DEVNULL,
            stdout=None if args.tty else subprocess.DEVNULL, preexec_fn=die_with_parent)
        try:
            return wait_for_status(qemu, control, args.timeout)
        finally:
            qemu.kill()
            qemu.wait()
            shutil.copyfile(control / "console", args.out / "console.log")


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./run vm", usage="%(prog)s [OPTIONS] [-- CMD [ARG...]]", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpus", type=int, default=4, help="virtual CPUs, 1 to 8 (default 4)")
    parser.add_argument("--icount", action="store_true",
                        help="count instructions: one CPU, on which 1 ns of clock_gettime is 1 instruction")
    parser.add_argument("--timeout", type=float, default=600, metavar="S",
                        help="seconds until the machine is stopped (default 600; 0: never)")
    parser.add_argument("--memory", default="2G", help="the guest's memory (default 2G)")
    parser.add_argument("--env", action="append", default=[], metavar="NAME[=VALUE]",
                        help="environment variable for the command")
    parser.add_argument("--systemd", action="store_true",
                        help="boot systemd with the target vm.target, and run the command when sysinit.target is reached")
    parser.add_argument("--root", type=pathlib.Path, metavar="DIR", default=HOST_ROOT,
                        help="folder that is the guest's root (default /); it does not change")
    parser.add_argument("--files", type=pathlib.Path, metavar="DIR",
                        help="tree of files that is copied over the root before systemd boots")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        default=os.environ.get("VM_OUT") or REPOSITORY / "build/vm-out",
                        help="folder of the host that is /out in the guest (default $VM_OUT, else build/vm-out); "
                             "console.log in it is the kernel's console")
    parser.add_argument("command", nargs="*", metavar="CMD")
    args = parser.parse_args(arguments)
    if not 1 <= args.cpus <= 8:
        parser.error("--cpus: the number must be 1 to 8 (CONFIG_NR_CPUS of the VM's kernel)")
    if args.icount:
        args.cpus = 1
    args.out = args.out.absolute()
    args.root = args.root.resolve()
    if not (args.root / "bin/bash").exists():
        parser.error(f"--root: {args.root} is not the root of a Linux system with bash")
    args.tty = not args.command
    if args.tty:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            parser.error("without a terminal, a command is required: ./run vm -- CMD ARG...")
        args.command = ["bash", "-i"]
        args.timeout = 0
    return args


def main():
    args = parse(sys.argv[1:])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    terminal = subprocess.run(["stty", "-g"], stdout=subprocess.PIPE, check=True).stdout if args.tty else None
    try:
        return run(args)
    except MachineError as error:
        print(f"vm: {error}", file=sys.stderr)
        return EXIT_MACHINE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        if terminal:
            subprocess.run(["stty", terminal.strip()], check=False)


if __name__ == "__main__":
    sys.exit(main())
