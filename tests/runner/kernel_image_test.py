"""Tests which files a build of scripts/kernel_image.sh leaves in the cache, however it ends. A stand-in for make
succeeds at once, fails or takes long; nothing is downloaded or compiled."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

from testing import processes

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/kernel_image.sh"
# Scripts in place of the programs that kernel_image.sh calls, by name. With them, every Debian package seems to be
# installed.
STAND_INS = {
    "dpkg-query": 'for package in "$@"; do echo "$package installed"; done',
    "tar": 'mkdir -p "$2/scripts/kconfig" && printf "#!/bin/sh\\n" >"$2/scripts/kconfig/merge_config.sh" && '
           'chmod +x "$2/scripts/kconfig/merge_config.sh"',
    "make": """
        case $* in
          *olddefconfig)
            for option in USER_EVENTS PERF_EVENTS NET_9P_VIRTIO OVERLAY_FS; do echo "CONFIG_$option=y"; done >.config ;;
          *bzImage)
            mkdir -p arch/x86/boot
            echo image >arch/x86/boot/bzImage
            if [ "$MAKE_DOES" = fail ]; then echo "cc1: no such option"; exit 2; fi
            if [ "$MAKE_DOES" = hang ]; then
              # Stands for a compiler that make has started. It writes files until it is killed.
              (echo "$BASHPID" >"$COMPILER"; while :; do echo object >"object.$RANDOM"; sleep 0.01; done) &
              wait
            fi ;;
        esac""",
}


class Build:
    """Runs the script with a new cache folder."""

    def __init__(self, folder):
        self.cache = folder / "cache/nettraced"
        self.compiler = folder / "compiler"
        stand_ins = folder / "bin"
        stand_ins.mkdir()
        for name, script in STAND_INS.items():
            (stand_ins / name).write_text(f"#!/bin/bash\n{script}\n")
            (stand_ins / name).chmod(0o755)
        self.environment = {name: value for name, value in os.environ.items() if name != "EVENTHEADER_VM_KERNEL"}
        self.environment |= {"PATH": f"{stand_ins}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(folder / "cache"),
                             "COMPILER": str(self.compiler)}

    def start(self, does, *arguments):
        return subprocess.Popen([SCRIPT, *arguments], env=self.environment | {"MAKE_DOES": does}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def start_to_compile(self):
        process = self.start("hang")
        wait_until(lambda: self.compiler.exists() and self.compiler.read_text().strip())
        return process

    def run(self, does, *arguments):
        process = self.start(does, *arguments)
        stdout, stderr = process.communicate(timeout=60)
        return process.returncode, stdout, stderr

    def left(self):
        """Returns the names of the files in the cache, without the lock."""
        return sorted(path.name for path in self.cache.iterdir() if path.name != "kernel.lock")

    def compiler_runs(self):
        return int(self.compiler.read_text()) in processes.running()


@pytest.fixture(name="build")
def fixture_build(tmp_path):
    return Build(tmp_path)


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def assert_image(build, done):
    status, stdout, stderr = done
    assert status == 0, stderr
    [name] = build.left()
    assert name.startswith("bzImage-6.12-")
    assert stdout == f"{build.cache / name}\n"
    assert (build.cache / name).read_text() == "image\n"


def test_a_build_leaves_the_image_alone_and_shows_progress(build):
    done = build.run("build")
    assert_image(build, done)
    for text in ("unpacking", "configuring", "compiling", "built"):
        assert text in done[2]
    # The next run finds the image.
    assert build.run("fail") == (0, done[1], "")


def test_a_failed_build_leaves_its_log_alone(build):
    status, stdout, stderr = build.run("fail")
    assert (status, stdout) == (1, "")
    assert "cc1: no such option" in stderr
    assert build.left() == ["kernel-build.log"]
    assert "cc1: no such option" in (build.cache / "kernel-build.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_build_leaves_nothing_and_ends_its_compilers(build, number):
    process = build.start_to_compile()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert build.left() == []
    assert not build.compiler_runs()


def test_a_killed_build_leaves_nothing_and_ends_its_compilers(build):
    process = build.start_to_compile()
    process.kill()
    process.communicate(timeout=60)
    # The guard of the build removes the files after the script has ended.
    wait_until(lambda: build.left() == [] and not build.compiler_runs())


def test_removes_files_of_an_earlier_run(build):
    (build.cache / "kernel-build.abcdef/arch").mkdir(parents=True)
    (build.cache / "kernel-build.abcdef.log").touch()
    (build.cache / "bzImage-6.12-0123456789ab.partial").touch()
    assert_image(build, build.run("build"))


def test_a_second_run_waits_for_the_first(build):
    first = build.start_to_compile()
    second = build.start("build")
    assert "another run is building the kernel" in second.stderr.readline()
    first.terminate()
    first.communicate(timeout=60)
    stdout, stderr = second.communicate(timeout=60)
    assert_image(build, (second.returncode, stdout, stderr))


@pytest.mark.parametrize("arguments, status", [
    (["--help"], 0), (["-h"], 0), (["--none"], 2), (["6.12"], 2), (["--help", "more"], 2)])
def test_arguments_build_nothing(build, arguments, status):
    ended, stdout, stderr = build.run("build", *arguments)
    assert ended == status
    assert "usage: scripts/kernel_image.sh" in (stderr if status else stdout)
    assert not build.cache.exists()
