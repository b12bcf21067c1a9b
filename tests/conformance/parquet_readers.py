"""Reads Parquet files with two independent implementations, DuckDB and hyparquet, which npm installs."""

import contextlib
import json
import pathlib
import shutil
import subprocess

from support import script

SOURCES = pathlib.Path(__file__).parent / "parquet"
FILES = "package.json", "package-lock.json", "read.mjs"


def install(folder):
    """Installs the readers into `folder`, unless they are there. Skips the test if that is impossible."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / "node_modules" / "installed-lock.json"
    wanted = (SOURCES / "package-lock.json").read_bytes()
    for name in FILES:
        shutil.copyfile(SOURCES / name, folder / name)
    if lock.is_file() and lock.read_bytes() == wanted:
        return
    try:
        ran = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise script.Skipped(f"needs node and npm: {error}") from error
    if ran.returncode != 0:
        last = ran.stdout.decode(errors="replace").strip().splitlines()[-1:]
        raise script.Skipped(f"npm cannot install DuckDB and hyparquet: {last}")
    lock.write_bytes(wanted)


class Readers:
    """A process with both readers, which finds files in its working directory."""

    def __init__(self, folder, directory):
        self.process = subprocess.Popen(["node", folder.resolve() / "read.mjs"], cwd=directory, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def _ask(self, **request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the readers ended while they read {request}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{request}: {answer['error']}")
        return answer

    def read(self, file):
        """Returns what DuckDB and hyparquet read from a file."""
        answer = self._ask(file=str(file))
        answer["duckdb"]["types"] = dict(answer["duckdb"]["types"])
        return answer["duckdb"], answer["hyparquet"]

    def query(self, sql):
        """Returns the rows of a query of DuckDB, as objects."""
        return self._ask(sql=sql)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def opened(folder, directory=None):
    install(folder)
    readers = Readers(folder, directory)
    try:
        yield readers
    finally:
        readers.close()
