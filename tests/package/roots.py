"""Fresh minimal Debian roots, and packages that are installed in them."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from support import script

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# Lower than every version in debian/changelog.
OLD_VERSION = "0.0.1"
# Compiling without optimization and debug information takes a tenth of the time, because debian/rules then makes a unity
# build. The caller's options take precedence.
QUICK = {} if "DEB_BUILD_OPTIONS" in os.environ else {
    "DEB_BUILD_OPTIONS": "noopt noautodbgsym", "DEB_CFLAGS_APPEND": "-g0", "DEB_CXXFLAGS_APPEND": "-g0"}


def need_root():
    """Skips the test if it cannot make a root."""
    if os.geteuid() != 0:
        raise script.Skipped("needs root, to make and enter a fresh Debian root")
    if not shutil.which("mmdebstrap"):
        raise script.Skipped("mmdebstrap is not installed")


def call(*command, **options):
    """Runs a command that must succeed. Returns its stdout and stderr as one text."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def build_packages(folder, *options, environment=None):
    """Builds the packages into a folder; returns their files by package."""
    call(REPOSITORY / "scripts/package.sh", "--output", folder, *options, env={**os.environ, **(environment or {})})
    return {file.name.partition("_")[0]: file for file in sorted(pathlib.Path(folder).glob("*.deb"))}


def _sources(release):
    """Returns the sources of that release of Debian, from the mirror that this machine uses."""
    folder = pathlib.Path("/etc/apt")
    files = [file for file in (folder / "sources.list", *sorted((folder / "sources.list.d").glob("*")))
             if file.suffix in (".list", ".sources") and file.exists() and "bookworm" in file.read_text()]
    if not files:
        raise script.Skipped("/etc/apt names no source of Debian 12 (bookworm)")
    return "\n\n".join(file.read_text() for file in files).replace("bookworm", release)


class Root:
    """A root file system in a folder, with commands run in it by chroot."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def run(self, *command, cwd="/"):
        return call("chroot", self.path, "env", "--chdir", cwd, "-i", "HOME=/root", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8",
                    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *command)

    def install(self, *files):
        """Installs packages, given as files or by name, with their dependencies."""
        names = []
        for file in files:
            if isinstance(file, pathlib.Path):
                shutil.copy(file, self.path / "var/cache/apt/archives")
                file = f"/var/cache/apt/archives/{file.name}"
            names.append(file)
        self._apt("install", *names)

    def satisfy(self, *files):
        """Installs the dependencies of these packages, but not the packages."""
        names = {call("dpkg-deb", "--field", file, "Package").strip() for file in files}
        for file in files:
            depends = call("dpkg-deb", "--field", file, "Depends").strip().split(", ")
            self._apt("satisfy", ", ".join(each for each in depends if each.split()[0] not in names))

    def _apt(self, *words):
        self.run("apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0", "-o", "Dpkg::Options::=--force-unsafe-io",
                 "--no-install-recommends", *words)

    def files(self):
        """Returns type, mode, owner, and target or content of each file, by path. Leaves out files that change whenever
        apt, dpkg or a program runs."""
        changing = ("/var/cache/", "/var/lib/apt/", "/var/lib/dpkg/", "/var/log/", "/tmp/", "/run/", "/proc/", "/sys/", "/dev/")
        found = {}
        for folder, folders, names in os.walk(self.path):
            for name in (*folders, *names):
                file = pathlib.Path(folder, name)
                path = "/" + str(file.relative_to(self.path))
                if (path + "/").startswith(changing):
                    continue
                status = file.lstat()
                content = os.readlink(file) if file.is_symlink() else file.read_bytes() if file.is_file() else b""
                found[path] = (oct(status.st_mode), status.st_uid, status.st_gid, content)
        return found


@contextlib.contextmanager
def _folder():
    """Yields a temporary folder that may contain mounts."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="debian-", dir="/var/tmp"))
    try:
        yield folder
    finally:
        # Unmounts everything, including the mounts of the test, because files below a mount must not be deleted.
        mounts = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
        for mount in reversed([mount for mount in mounts if mount.startswith(f"{folder}/")]):
            call("umount", mount)
        call("rm", "--recursive", "--force", "--one-file-system", folder)


@contextlib.contextmanager
def fresh(release="bookworm"):
    """Makes a minimal Debian, 12 by default."""
    with _folder() as folder:
        path = folder / "root"
        sources = folder / "debian.sources"
        sources.write_text(_sources(release))
        call("mmdebstrap", "--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io", release, path, sources)
        shutil.copy("/etc/resolv.conf", path / "etc/resolv.conf")
        for file in pathlib.Path("/etc/apt/apt.conf.d").glob("*"):
            # Settings of this machine for downloads, such as a proxy.
            if "Acquire::" in file.read_text():
                shutil.copy(file, path / "etc/apt/apt.conf.d")
        (path / "dev").mkdir(exist_ok=True)
        for kind, where in (("proc", "proc"), ("sysfs", "sys")):
            call("mount", "-t", kind, kind, path / where)
        # Forbids packages to start their services, because the root is only entered by chroot.
        policy = path / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        root = Root(path)
        root.run("apt-get", "-q", "update")
        yield root
