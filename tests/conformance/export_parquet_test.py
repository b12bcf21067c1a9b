#!/usr/bin/python3
"""Tests that the files of `nettrace export --to parquet` have what `nettrace dump --json` shows: the same events in the
same order with the same values, and the same losses. DuckDB and hyparquet, two independent implementations, read the
files; see parquet_readers.py. Also checks the statistics of each row group, that queries read only the row groups that
they need, and the memory that an export needs."""

import json
import pathlib
import re
import shutil
import struct
import subprocess

from support import commands
from support import documents
from support import script
from support import trace_bytes

import ctf
import parquet_readers

FILES = ("types", "quirks", "labels", "activities", "names", "intervals", "lost", "account", "empty", "sections")
TYPED_FILES = "types", "quirks", "labels", "lost", "common-schema"
SEEDS = range(1, 5)
MAX_SHOWN = 10
GROUP_ROWS = 131_072

# The types that DuckDB must show for the columns of a table of all events.
TYPES = {"time": "TIMESTAMP WITH TIME ZONE", "provider": "VARCHAR", "event": "VARCHAR", "level": "UTINYINT", "keyword": "UBIGINT",
         "opcode": "UTINYINT", "id": "UINTEGER", "version": "UTINYINT", "pid": "UBIGINT", "tid": "UBIGINT",
         "cpu": "UINTEGER", "process": "VARCHAR", "thread": "VARCHAR", "unit": "VARCHAR", "container": "VARCHAR",
         "host": "VARCHAR", "activity_id": "UUID", "related_id": "UUID", "trace_id": "VARCHAR", "span_id": "VARCHAR",
         "fields": "JSON", "error": "VARCHAR"}


class Differences(list):
    def same(self, where, ours, theirs):
        if ours != theirs:
            self.append(f"{where}: {str(ours)[:200]} became {str(theirs)[:200]}")


def export(args, source, out, *options):
    subprocess.run([args.nettrace, "export", "--to", "parquet", "--processes", "--account", *options, source, "-o", out],
                   check=True, stderr=subprocess.DEVNULL)


def text(value):
    """Returns a number as text, as the readers show it; other values unchanged."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def expected_row(event):
    """Returns the columns of an event that `dump --json` shows."""
    labels = event["labels"]
    return {
        "time": str(ctf.nanoseconds(event["time"])), "provider": event["provider"], "event": event["name"],
        "level": str(event["level"]), "keyword": str(int(event["keywords"], 16)), "opcode": str(event["opcode"]),
        "id": str(event["id"]), "version": str(event["version"]), "pid": text(event["pid"]), "tid": text(event["tid"]),
        "cpu": text(event["cpu"]), "thread": event["thread"] or None, "activity_id": event["activityId"],
        "related_id": event["relatedActivityId"], "trace_id": labels.get("TraceId"), "span_id": labels.get("SpanId"),
        "error": event.get("error")}


def pairs(json_text):
    """Returns parsed JSON with each object as a list of pairs, so that the order of names is kept."""
    return json.loads(json_text, object_pairs_hook=list, parse_float=str)


def normalized(row):
    """Returns a row of either reader in the form of `expected_row`."""
    return {name: text(value) for name, value in row.items()}


def microseconds(shown):
    """Returns a time with time zone of DuckDB, which has microseconds, as microseconds since 1970."""
    return ctf.nanoseconds(shown.removesuffix("+00").replace(" ", "T") + "Z") // 1000


def check_rows(found, reader, events, lost, rows):
    losses = [row for row in rows if row["provider"] == "nettrace"]
    rows = [normalized(row) for row in rows if row["provider"] != "nettrace"]
    found.same(f"{reader}: events lost", lost, sum(json.loads(row["fields"])["count"] for row in losses))
    for row in losses:
        found.same(f"{reader}: name and level of a loss", ("LostEvents", "3"), (row["event"], text(row["level"])))
    found.same(f"{reader}: number of events", len(events), len(rows))
    for number, ((event, fields), row) in enumerate(zip(events, rows), 1):
        where = f"{reader}: event {number}"
        for name, value in expected_row(event).items():
            shown = row[name]
            if name == "time" and reader == "DuckDB":
                value, shown = int(value) // 1000, microseconds(shown)
            found.same(f"{where}: {name}", value, shown)
        found.same(f"{where}: fields", fields, pairs(row["fields"]))


def order(column):
    """Returns a function for the order of the values of a column: numbers by value, and text by its bytes."""
    return (lambda value: value.encode()) if column["type"] == "BYTE_ARRAY" else float if column["type"] in (
        "FLOAT", "DOUBLE") else int


def check_group(found, number, group, schema, rows):
    for column in group["columns"]:
        if len(column["path"]) > 1:
            continue  # the column is a list, for which the file has no minimum and maximum
        leaf = next(each for each in schema[1:] if each["name"] == column["path"][0])
        name, statistics = column["path"][0], column["statistics"]
        where = f"row group {number}: {name}"
        values = [row[name] for row in rows if row[name] is not None]
        found.same(f"{where}: codec", "ZSTD", column["codec"])
        found.same(f"{where}: number of values", str(len(rows)), text(column["values"]))
        found.same(f"{where}: nulls", str(len(rows) - len(values)), text(statistics["null_count"]))
        if not values or "min_value" not in statistics:
            continue
        least, greatest = (function(values, key=order(leaf)) for function in (min, max))
        if leaf["type"] == "BYTE_ARRAY" and len(least.encode()) > 64:
            found.same(f"{where}: whether min_value begins the least value", True, least.startswith(statistics["min_value"]))
            found.same(f"{where}: whether the least value is exact", False, statistics["is_min_value_exact"])
        else:
            found.same(f"{where}: least value", text(least), text(statistics["min_value"]))
        if "max_value" in statistics:
            found.same(f"{where}: greatest value", text(greatest), text(statistics["max_value"]))
        else:
            found.same(f"{where}: whether a greatest value without max_value is long", True, len(greatest.encode()) > 64)


def check_statistics(found, read):
    rows = read["rows"]
    for number, group in enumerate(read["groups"]):
        count = int(group["rows"])
        check_group(found, number, group, read["schema"], rows[:count])
        rows = rows[count:]
    found.same("rows outside of row groups", 0, len(rows))


def check_wide(args, readers, source):
    found = Differences()
    out = args.out / f"{source.stem}.parquet"
    export(args, source, out)
    piped = subprocess.run([args.nettrace, "export", "--to", "parquet", "--processes", "--account", source, "-o", "-"],
                           check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    found.same("whether standard output is equal to the file", True, piped == out.read_bytes())
    dumped = subprocess.run([args.nettrace, "dump", "--json", "--processes", "--account", source], check=True,
                            stdout=subprocess.PIPE).stdout.splitlines()
    events = [(json.loads(line), dict(pairs(line))["payload"]) for line in dumped]
    lost = commands.info(args.nettrace, source)["lost"]
    duckdb, hyparquet = readers.read(out)
    found.same("types in DuckDB", TYPES, duckdb["types"])
    check_rows(found, "DuckDB", events, lost, duckdb["rows"])
    check_rows(found, "hyparquet", events, lost, hyparquet["rows"])
    check_statistics(found, hyparquet)
    return found, len(events)


def leaves(payload, parent=""):
    """Yields the names and values of the fields of a payload that are not structs."""
    for name, value in payload:
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            yield from leaves(value, f"{parent}{name}.")
        else:
            yield parent + name, value


def same_value(ours, theirs, column, reader):
    """Returns whether a value of a column is the value that dump shows. `column` is the type in DuckDB."""
    if ours is None or theirs is None:
        return ours is theirs
    if column.endswith("[]"):
        return len(ours) == len(theirs) and all(same_value(*pair, column[:-2], reader) for pair in zip(ours, theirs))
    if column == "JSON":
        return pairs(theirs) == ours
    if column in ("FLOAT", "DOUBLE"):
        kind = "<f" if column == "FLOAT" else "<d"
        return struct.pack(kind, float(ours)) == struct.pack(kind, float(theirs)) or str(ours) == str(theirs) == "NaN"
    if column == "TIMESTAMP WITH TIME ZONE":
        shown = ctf.nanoseconds(ours)
        return shown // 1000 == microseconds(theirs) if reader == "DuckDB" else str(shown) == theirs
    if column == "BLOB":
        return reader == "DuckDB" or ours == theirs
    if isinstance(ours, str) and ours.startswith("0x") and column.endswith(("INT", "INTEGER")):
        return int(ours, 16) == int(theirs)
    return text(ours) == text(theirs)


class TypedTable:
    """A file of one kind of event. `next` is the number of the row of the next event."""

    def __init__(self, readers, path):
        duckdb, hyparquet = readers.read(path)
        self.name, self.types, self.next = path.name, duckdb["types"], 0
        self.fields = list(self.types)[len(TYPES) - 2:-1]
        self.rows = {"DuckDB": duckdb["rows"], "hyparquet": hyparquet["rows"]}
        self.hyparquet = hyparquet

    def is_next(self, event):
        rows = self.rows["hyparquet"][self.next:self.next + 1]
        return bool(rows) and (rows[0]["time"], rows[0]["provider"], rows[0]["event"]) == (
            str(ctf.nanoseconds(event["time"])), event["provider"], event["name"])

    def differences(self, event, payload):
        """Returns how the next row differs from an event."""
        result = Differences()
        shown = list(leaves(payload))
        for reader, rows in self.rows.items():
            row = rows[self.next]
            for name, value in expected_row(event).items():
                value, other = (int(value) // 1000, microseconds(row[name])) if (name, reader) == ("time", "DuckDB") else (
                    value, text(row[name]))
                if name != "error" or "error" in event:
                    result.same(f"{self.name}: {reader}: {name}", value, other)
            if len(shown) != len(self.fields):
                if "error" not in event and len(set(self.fields)) == len(self.fields) == len({name for name, _ in shown}):
                    result.same(f"{self.name}: fields", [name for name, _ in shown], self.fields)
                continue
            for (name, value), column in zip(shown, self.fields):
                if not same_value(value, row[column], self.types[column], reader) and not (
                        row[column] is None and row["error"]):
                    result.append(f"{self.name}: {reader}: {name}: {value} became {row[column]} ({self.types[column]})")
        return result


def take_row(tables, event, payload):
    """Takes the row of an event from one of the tables; returns the differences."""
    shown = None
    for table in tables:
        if table.is_next(event):
            differences = table.differences(event, payload)
            if not differences:
                table.next += 1
                return []
            shown = shown or differences
    return shown or [f"no table has a row for {event}"]


# The types that DuckDB must show for the field `a` of events of these names.
FIELD_TYPES = {"SByte": "TINYINT", "Byte": "UTINYINT", "Int16": "SMALLINT", "UInt16": "USMALLINT", "Int32": "INTEGER",
               "UInt32": "UINTEGER", "Int64": "BIGINT", "UInt64": "UBIGINT", "Boolean8": "BOOLEAN", "Boolean32": "BOOLEAN",
               "Single": "FLOAT", "Double": "DOUBLE", "Guid": "UUID", "VarInt": "BIGINT", "VarUInt": "UBIGINT",
               "ZeroTerminated": "VARCHAR", "Utf16Text": "VARCHAR", "ArrayOfUInt16": "USMALLINT[]",
               "EmptyArrayOfGuid": "UUID[]", "FixedLengthArrayOfSingle": "FLOAT[]", "ArrayOfUtf16Text": "VARCHAR[]"}


def check_typed(args, readers, source):
    found = Differences()
    out = args.out / f"{source.stem}.typed"
    shutil.rmtree(out, ignore_errors=True)
    export(args, source, out, "--typed")
    tables = {}
    for path in sorted(out.iterdir()):
        if path.name != "nettrace.LostEvents.parquet":
            tables.setdefault(path.name.removesuffix(".parquet").split("@")[0], []).append(TypedTable(readers, path))
    losses = out / "nettrace.LostEvents.parquet"
    lost = sum(int(row["count"]) for row in readers.read(losses)[1]["rows"]) if losses.exists() else 0
    found.same("events lost", commands.info(args.nettrace, source)["lost"], lost)
    dumped = subprocess.run([args.nettrace, "dump", "--json", "--processes", "--account", source], check=True,
                            stdout=subprocess.PIPE).stdout.splitlines()
    for line in dumped:
        event = json.loads(line)
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{event['provider']}.{event['name']}")
        candidates = tables.get(name) or [each for same in tables.values() for each in same]
        found += take_row(candidates, event, dict(pairs(line))["payload"])
    every = [table for same in tables.values() for table in same]
    for table in every:
        found.same(f"{table.name}: rows taken", len(table.rows["DuckDB"]), table.next)
        check_statistics(found, table.hyparquet)
    if source.stem == "types":
        shown = {name: tables[f"Conformance.{name}"][0].types["a"] for name in FIELD_TYPES}
        found.same("types of fields", FIELD_TYPES, shown)
    return found, len(dumped), len(every)


def check_partitions(args, readers, source):
    """Checks that the files of a data set have all rows, each in the directory of its time and host."""
    found = Differences()
    out = args.out / f"{source.stem}.partitions"
    for options in (("--partition", "date,hour,host"), ("--partition", "date,hour,host", "--typed")):
        shutil.rmtree(out, ignore_errors=True)
        export(args, source, out, *options)
        table = f"read_parquet('{out}/**/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
        [counts] = readers.query(
            f"select count(*) as rows, count(*) filter (strftime(time::timestamp, '%Y-%m-%d') <> date or "
            f"strftime(time::timestamp, '%H') <> hour) as wrong, count(host) as hosts from {table} where provider <> 'nettrace'")
        events = subprocess.run([args.nettrace, "dump", "--json", "--processes", "--account", source], check=True,
                                stdout=subprocess.PIPE).stdout.count(b"\n")
        found.same(f"{options}: rows", events, int(counts["rows"]))
        found.same(f"{options}: rows in the directory of another time", 0, int(counts["wrong"]))
    return found


def check_pruning(found, readers, file, least):
    """Checks that DuckDB reads only the last row group for the rows after `least`, in us: it finds them in a copy of the
    file in which all other row groups are overwritten."""
    condition = f"where time >= make_timestamptz({least})"
    wanted = readers.query(f"select count(*) as rows, sum(epoch_us(time)) as sum from '{file}' {condition}")
    begin = min(int(column["begin"]) for column in readers.query(
        f"select coalesce(dictionary_page_offset, data_page_offset) as begin from parquet_metadata('{file}') "
        f"where row_group_id = (select max(row_group_id) from parquet_metadata('{file}'))"))
    copy = file.with_suffix(".overwritten.parquet")
    data = bytearray(file.read_bytes())
    data[4:begin] = bytes(begin - 4)
    copy.write_bytes(data)
    found.same("rows of a query by time", wanted,
               readers.query(f"select count(*) as rows, sum(epoch_us(time)) as sum from '{copy}' {condition}"))
    found.same("whether the query has rows", True, int(wanted[0]["rows"]) > 0)
    try:
        readers.query(f"select sum(epoch_us(time)) as sum from '{copy}'")
        found.append("a query of all row groups succeeds although all but the last are overwritten")
    except RuntimeError:
        pass


def check_many(args, readers):
    """Checks an export of many rows: its row groups, the groups that a query reads, and its memory."""
    found = Differences()
    source, out = args.out / "many.nettrace", args.out / "many.parquet"
    interval = 10_000
    trace_bytes.write_long(source, args.events // interval, [bytes([1, name]) + b"\x0c" for name in b"ab"], bytes(16), interval)
    memory = commands.peak_memory(args.nettrace, "export", "--to", "parquet", source, "-o", out) / 1024
    table = f"read_parquet('{out}')"
    groups = readers.query(f"select row_group_id as id, any_value(row_group_num_rows) as rows from parquet_metadata('{out}') "
                           "group by all order by id")
    count = -(-args.events // GROUP_ROWS)
    found.same("row groups", [GROUP_ROWS] * (count - 1) + [args.events - GROUP_ROWS * (count - 1)],
               [int(group["rows"]) for group in groups])
    found.same("rows", args.events, int(readers.query(f"select count(*) as rows from {table}")[0]["rows"]))
    bounds = [tuple(microseconds(group[name]) for name in ("least", "greatest")) for group in readers.query(
        f"select stats_min_value as least, stats_max_value as greatest from parquet_metadata('{out}') "
        "where path_in_schema = 'time' order by row_group_id")]
    found.same("least and greatest times of row groups, in order", sorted(bounds), bounds)
    check_pruning(found, readers, out, bounds[-1][0] + 1)
    print(f"{args.events} rows: {memory:.0f} MiB, {out.stat().st_size / args.events:.2f} bytes a row, {len(groups)} row groups")
    found.same(f"whether the peak memory of {memory:.0f} MiB is at most {args.memory} MiB", True, memory <= args.memory)
    return found


def cells(table):
    """Returns the names of the columns of a table in a document, and its rows."""
    names, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
    return [dict(zip(names, row, strict=True)) for row in rows]


def check_guide(args):
    """Checks that the queries of the guide have the results that it shows."""
    found = Differences()
    folder = args.out / "guide"
    folder.mkdir(exist_ok=True)
    subprocess.run([args.example, folder / "trace.nettrace"], check=True)
    export(args, folder / "trace.nettrace", folder / "events.parquet")
    for out, options in (("tables", ["--typed"]), ("dataset", ["--partition", "date,host"])):
        shutil.rmtree(folder / out, ignore_errors=True)
        export(args, folder / "trace.nettrace", folder / out, *options)
    blocks = documents.taken_by(__file__, pathlib.Path(__file__).parents[2])
    queries = [block for block in blocks if block.language == "sql"]
    results = [block for block in blocks if block.language == "text"]
    found.same("whether the guide has queries and results", True, len(queries) == len(results) > 0)
    with parquet_readers.opened(args.out / "readers", folder) as readers:
        for query, result in zip(queries, results):
            shown = [{name: text(value) for name, value in row.items()} for row in readers.query(query.text)]
            found.same(query.name, cells(result.text), shown)
    return found


def main():
    parser = script.parser(__doc__, "nettrace", "generate", "random", "example", "out")
    parser.add_argument("--events", type=int, default=300_000, help="rows of the export whose memory is measured")
    parser.add_argument("--memory", type=int, default=64, help="the greatest memory in MiB that this export may need")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    passed = True
    with parquet_readers.opened(args.out / "readers") as readers:
        subprocess.run([args.generate, args.out], check=True)
        subprocess.run([args.random, args.out, "300", *map(str, SEEDS)], check=True)
        for name in [*FILES, *(f"random-{seed}" for seed in SEEDS)]:
            found, events = check_wide(args, readers, args.out / f"{name}.nettrace")
            passed &= report(f"{name}: {events} events", found)
        for name in [*TYPED_FILES, *(f"random-{seed}" for seed in SEEDS[:2])]:
            found, events, tables = check_typed(args, readers, args.out / f"{name}.nettrace")
            passed &= report(f"{name}: {events} events in {tables} tables", found)
        for name in ("intervals", "random-1", "lost"):
            passed &= report(f"{name} by date, hour and host", check_partitions(args, readers, args.out / f"{name}.nettrace"))
        passed &= report(f"{args.events} events", check_many(args, readers))
    passed &= report("the guide", check_guide(args))
    return passed


def report(name, found):
    print(f"{name}: {len(found)} differences")
    for difference in found[:MAX_SHOWN]:
        print(f"  {difference}")
    return not found


if __name__ == "__main__":
    script.main(main)
