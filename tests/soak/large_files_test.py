#!/usr/bin/python3
"""Tests that programs read large files in time that grows with the file and in memory that does not: `nettrace info`,
`dump`, `report` and `query`, over files of services whose activities start and stop. Prints the CPU time beside that of
`nettrace info`, and the peak memory. The page of the report must keep its size. With DuckDB, the queries run over the
JSON of the first file, too, and must have the same results.

  large_files_test.py --nettrace PATH --generate PATH --out PATH EVENTS...

DuckDB is used if EVENTHEADER_DUCKDB names a folder in which `npm install @duckdb/node-api` has run."""

import json
import os
import shutil
import subprocess
import sys

from support import commands
from support import script

EVENTS_OF_ACTIVITY = 2.25  # approximately, because write_activities also writes other events
PAGE_BYTES = 10_000_000
# For each query, the SQL for nettrace and the SQL for DuckDB.
QUERIES = {
    "count(*)": ("SELECT count(*) FROM events", "SELECT count(*) FROM events"),
    "number of each event": ("SELECT name, count(*) FROM events GROUP BY 1 ORDER BY 1", "SELECT name, count(*) FROM events GROUP BY 1 ORDER BY 1"),
    "sum of a field": ("SELECT sum(payload ->> 'n') FROM events", "SELECT sum(CAST(payload.n AS BIGINT)) FROM events"),
}
DUCKDB = """
const {{DuckDBInstance}} = require("@duckdb/node-api");
(async () => {{
  const connection = await (await DuckDBInstance.create(":memory:")).connect();
  await connection.run(`CREATE VIEW events AS SELECT * FROM read_json({file!r}, format = 'newline_delimited',
    columns = {{name: 'VARCHAR', payload: 'STRUCT(n BIGINT)'}})`);
  const rows = (await connection.runAndReadAll({sql!r})).getRows();
  console.log(JSON.stringify(rows.map(row => row.map(value => value === null ? null : String(value)))));
}})();
"""


def run(command, output=subprocess.DEVNULL, **options):
    """Runs a command that must succeed; returns its CPU time in s and its output."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, **options) as process:
        text = process.stdout.read() if process.stdout else b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, text.decode()


def command_of_cases(nettrace, file, page):
    return {"info": [nettrace, "info", file], "dump": [nettrace, "dump", file],
            "report": [nettrace, "report", file, "-o", page],
            **{f"query: {name}": [nettrace, "query", file, sql] for name, (sql, _) in QUERIES.items()}}


def measure(args, file):
    """Prints a table about the file. Returns its peak memory in KiB by case, and problems."""
    events = commands.info(args.nettrace, file)["events"]
    page = args.out / "page.html"
    print(f"{events:,} events, {file.stat().st_size / 1e6:,.0f} MB")
    memory, problems, info = {}, [], None
    for name, command in command_of_cases(args.nettrace, file, page).items():
        seconds, _ = run(command)
        info = info or seconds
        memory[name] = commands.peak_memory("/bin/sh", "-c", 'exec "$@" > /dev/null', "sh", *command)
        print(f"  {name:28} {seconds:8.2f} s {seconds / info:8.1f} times info {memory[name] / 1024:8.1f} MiB", flush=True)
    size = page.stat().st_size
    print(f"  the page has {size:,} bytes")
    if size > PAGE_BYTES:
        problems.append(f"{file.name}: the page has {size} bytes, more than {PAGE_BYTES}")
    return memory, problems


def compare_with_duckdb(args, file):
    """Prints the CPU time of DuckDB for the queries. Returns messages about results that differ from nettrace's."""
    folder = os.environ.get("EVENTHEADER_DUCKDB")
    if not folder or not shutil.which("node"):
        print("DuckDB is not measured: that needs node, and EVENTHEADER_DUCKDB")
        return []
    lines = args.out / "events.jsonl"
    with lines.open("wb") as out:
        seconds, _ = run([args.nettrace, "dump", "--json", file], output=out)
    print(f"  dump --json                  {seconds:8.2f} s, {lines.stat().st_size / 1e6:,.0f} MB")
    problems = []
    for name, (ours, theirs) in QUERIES.items():
        program = DUCKDB.format(file=str(lines), sql=theirs)
        seconds, text = run(["node", "-e", program], output=subprocess.PIPE, cwd=folder)
        own, shown = run([args.nettrace, "query", "--json", file, ours], output=subprocess.PIPE)
        print(f"  {name:28} {own:8.2f} s, DuckDB {seconds:8.2f} s", flush=True)
        results = sorted([str(value) for value in json.loads(line).values()] for line in shown.splitlines())
        if results != sorted(json.loads(text)):
            problems.append(f"{name}: nettrace query has {results}, and DuckDB has {text}")
    lines.unlink()
    return problems


def main():
    parser = script.parser(__doc__, "nettrace", "generate", "out")
    parser.add_argument("events", type=int, nargs="+", help="numbers of events of the files, in ascending order")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    memories, problems = [], []
    for events in args.events:
        file = args.out / f"{events}.nettrace"
        subprocess.run([args.generate, file, "1", str(int(events / EVENTS_OF_ACTIVITY))], check=True)
        memory, found = measure(args, file)
        memories.append(memory)
        problems += found
        if events == args.events[0]:
            problems += compare_with_duckdb(args, file)
        file.unlink()
    problems += commands.memory_growth(memories[0], memories[-1])
    print("\n".join(problems), end="\n" if problems else "")
    return not problems


if __name__ == "__main__":
    script.main(main)
