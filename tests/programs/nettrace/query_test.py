#!/usr/bin/python3
"""Tests that `nettrace query` gives the answers that jq gives over `nettrace dump --json`, and that statements can neither
write nor use much memory."""

import csv
import io
import json
import os
import re
import resource
import subprocess
import unittest

from support import commands, script, trace_folder

ARGS = script.options(__doc__, "nettrace", "generate", "traces")
MEGABYTE = 1024  # KiB

# A program of jq that returns the start and the stop event of each activity that has stopped, in the order of the
# stops.
ACTIVITIES = ("reduce .[] as $event ({open: {}, done: []}; if $event.activityId == null then . elif $event.opcode == 1"
              " then .open[$event.activityId] += [$event] elif $event.opcode == 2 and (.open[$event.activityId] | length) > 0"
              " then .done += [{start: .open[$event.activityId][-1], stop: $event}] | .open[$event.activityId] |= .[:-1]"
              " else . end) | .done")
# A statement and the program of jq that computes the same rows from an array of all events of the file.
SHOP = (
    ("SELECT count(*) FROM events", "[[length]]"),
    ("SELECT provider, name, count(*) FROM events GROUP BY provider, name ORDER BY provider, name",
     "group_by([.provider, .name]) | map([.[0].provider, .[0].name, length])"),
    ("SELECT number, utc(time) FROM events WHERE name = 'Query' ORDER BY number",
     "to_entries | map(select(.value.name == \"Query\") | [.key + 1, .value.time])"),
    ("SELECT name, id, level, opcode, pid, tid, cpu, thread, activity, related FROM events ORDER BY time",
     "map([.name, .id, .level, .opcode, .pid, .tid, .cpu, .thread, .activityId, .relatedActivityId])"),
    ("SELECT number FROM events WHERE provider = 'Shop.Web' AND pid = 1000 AND name = 'Request'",
     "to_entries | map(select(.value | .provider == \"Shop.Web\" and .pid == 1000 and .name == \"Request\") | [.key + 1])"),
    ("SELECT count(*) FROM events WHERE pid IN (1000, 2000)", "[[map(select(.pid == 1000 or .pid == 2000)) | length]]"),
    ("SELECT count(*) FROM events WHERE provider IN ('Shop.Web', 'Shop.Database', 'None')",
     "[[map(select(.provider == \"Shop.Web\" or .provider == \"Shop.Database\")) | length]]"),
    ("SELECT tid, min(number), max(number) FROM events WHERE tid IS NOT NULL GROUP BY tid ORDER BY tid",
     "to_entries | map(select(.value.tid)) | group_by(.value.tid) | map([.[0].value.tid, (map(.key) | min) + 1, (map(.key) | max) + 1])"),
    ("SELECT sum(json_extract(payload, '$.Rows')), max(payload ->> 'Rows') FROM events WHERE name = 'Query'",
     "[map(select(.name == \"Query\") | .payload.Rows)] | map([add, max])"),
    ("SELECT DISTINCT thread FROM events WHERE thread IS NOT NULL ORDER BY thread", "map(.thread | values) | unique | map([.])"),
    ("SELECT field, type, count(*) FROM fields GROUP BY 1, 2 ORDER BY 1, 2",
     "[.[].payload | to_entries[] | [.key, (if (.value | type) == \"number\" then \"integer\" else \"text\" end)]]"
     " | group_by(.) | map(.[0] + [length])"),
    ("SELECT sum(value) FROM fields WHERE field = 'Order' AND provider = 'Shop.Web'",
     "[[map(select(.provider == \"Shop.Web\") | .payload.Order | values) | add]]"),
    ("SELECT e.number, e.thread, f.value FROM events e JOIN fields f USING (number) WHERE e.name = 'RequestDone' ORDER BY 1",
     "to_entries | map(select(.value.name == \"RequestDone\") | [.key + 1, .value.thread, .value.payload.Status])"),
    ("SELECT parent, name, id, duration, status FROM activities WHERE stop IS NOT NULL",
     f"{ACTIVITIES} | map([.start.relatedActivityId, .start.name, .start.activityId, .stop.timestamp - .start.timestamp,"
     " .stop.payload.Status])"),
    ("SELECT count(*) FROM activities WHERE stop IS NULL",
     "[[(map(select(.opcode == 1)) | length) - (map(select(.opcode == 2)) | length)]]"),
    ("SELECT a.name, count(*) FROM activities a JOIN events e ON e.activity = a.id GROUP BY a.name",
     "[[\"Request\", (map(select(.activityId)) | group_by(.activityId) | map((map(select(.opcode == 1)) | length) * length) | add)]]"),
    ("SELECT pid, events FROM processes WHERE events > 0 ORDER BY pid",
     "map(select(.pid)) | group_by(.pid) | map([.[0].pid, length])"),
    ("SELECT max(gap) FROM (SELECT time - lag(time) OVER (ORDER BY time) AS gap FROM events)",
     "[[[.[].timestamp] | [.[1:], .[:-1]] | transpose | map(.[0] - .[1]) | max]]"),
)
MIXED = (
    ("SELECT number FROM events WHERE level <= 2", "to_entries | map(select(.value.level <= 2) | [.key + 1])"),
    ("SELECT level, count(*) FROM events GROUP BY level ORDER BY level", "group_by(.level) | map([.[0].level, length])"),
    ("SELECT number, name FROM events ORDER BY time DESC, number DESC LIMIT 5",
     "to_entries[-5:] | reverse | map([.key + 1, .value.name])"),
    ("SELECT count(*) FROM events WHERE level < 4 AND opcode = 0", "[[map(select(.level < 4 and .opcode == 0)) | length]]"),
    ("SELECT name, count(*) AS n FROM events GROUP BY name HAVING n < 100 ORDER BY n, name",
     "group_by(.name) | map([.[0].name, length]) | map(select(.[1] < 100)) | sort_by([.[1], .[0]])"),
    ("SELECT count(*), count(stop) FROM activities",
     "[[(map(select(.opcode == 1)) | length), (map(select(.opcode == 2)) | length)]]"),
)
RANDOM = (
    ("SELECT printf('0x%x', keyword), count(*) FROM events GROUP BY keyword ORDER BY 1",
     "group_by(.keywords) | map([.[0].keywords, length])"),
    ("SELECT json_extract(json, '$.timestamp'), json_extract(json, '$.level') FROM events", "map([.timestamp, .level])"),
    ("SELECT json(payload) FROM events", "map([.payload])"),
    ("SELECT count(*) FROM (SELECT DISTINCT activity FROM events)", "[[map(.activityId) | unique | length]]"),
)


def query(*words, expect=0, **options):
    ran = subprocess.run([ARGS.nettrace, "query", *map(str, words)], capture_output=True, check=False, timeout=100, **options)
    ran.stdout, ran.stderr = ran.stdout.decode(), ran.stderr.decode()
    assert ran.returncode == expect, f"{words}: exit status {ran.returncode} instead of {expect}: {ran.stderr}"
    return ran


def rows(*words):
    """Runs a statement; returns the values of each row of its result."""
    return [list(json.loads(line).values()) for line in query("--json", *words).stdout.splitlines()]


def numbers(text):
    """Parses JSON. A number that is written with an exponent equals the same number without one."""
    return json.loads(text, parse_int=float)


def dump(*words):
    return subprocess.run([ARGS.nettrace, "dump", "--json", *map(str, words)], stdout=subprocess.PIPE, check=True).stdout


class QueryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = trace_folder.make(cls, ARGS.traces, ARGS.generate, 200, 1)
        cls.shop = cls.folder / "shop.nettrace"
        cls.mixed = cls.folder / "mixed.nettrace"
        cls.random = cls.folder / "random-1.nettrace"

    def compare(self, file, cases, decode=lambda row: row):
        events = dump(file)
        self.assertGreater(len(cases), 3)
        for sql, program in cases:
            with self.subTest(sql=sql):
                expected = numbers(subprocess.run(["jq", "--slurp", "--compact-output", program], input=events, check=True,
                                                     stdout=subprocess.PIPE).stdout)
                self.assertTrue(expected)
                self.assertEqual([decode(row) for row in rows(file, sql)], expected)

    def test_answers_are_those_of_jq(self):
        self.compare(self.shop, SHOP)

    def test_answers_about_many_events_are_those_of_jq(self):
        self.compare(self.mixed, MIXED)

    def test_answers_about_all_types_are_those_of_jq(self):
        def decode(row):
            return [numbers(value) if isinstance(value, str) and value.startswith("{") else value for value in row]
        self.compare(self.random, RANDOM, decode)

    def test_conditions_select_the_same_rows_as_without_pushing_them_down(self):
        [[middle]] = rows(self.shop, "SELECT time FROM events WHERE number = 300")
        for condition in ("provider = 'Shop.Web'", "provider = 5", "provider IN ('Shop.Web', NULL, 5)", "provider IN (NULL)",
                          "provider COLLATE NOCASE = 'shop.web'", "pid = 1000.0", "pid = '1000'", "pid = NULL", "pid IN (1000, '2000')",
                          "pid = -1", "level <= 4", "level < 4", "level = 4", "level < -1", "level <= 1000", "level > 3",
                          f"time < {middle}", f"time <= {middle}", f"time > {middle}", f"time >= {middle}", f"time = {middle}",
                          f"time BETWEEN {middle} AND {middle} + 1e6", "time < 1e30", "time > 9223372036854775807", "number = 5",
                          "number IN (9, 3, 7)", "number = 0", "number = 1e3", "number = 'x'", "tid = 1000 AND tid = 2000",
                          "provider = 'Shop.Web' AND provider = 'Shop.Database'", "name = 'Query' OR name = 'Request'"):
            with self.subTest(condition=condition):
                # A condition on expressions must select the same rows as on columns. SQLite cannot pass conditions on
                # expressions to the reader, so it checks each row itself.
                hidden = re.sub(r"\b(provider|name)\b(?! COLLATE)", r"(\1||'')", re.sub(r"\b(pid|tid|level|time|number)\b", r"(+\1)", condition))
                # SQLite converts '1000' when it compares it with a column of numbers, but not with an expression. So the test
                # replaces these values by values of the column's type.
                hidden = hidden.replace("'1000'", "1000").replace("'2000'", "2000").replace("'') = 5", "'') = '5'")
                shown = [rows(self.shop, f"SELECT number FROM events WHERE {each}") for each in (condition, hidden)]
                self.assertEqual(*shown)

    def test_joins_by_number_read_the_file_once(self):
        sql = "SELECT count(*) FROM events e JOIN fields f ON f.number = e.number"
        [[count]] = rows(self.mixed, sql)
        self.assertEqual([[count]], rows(self.mixed, "SELECT count(*) FROM fields"))
        self.assertGreater(count, 10_000)
        # In descending order, the reader must search for each row from the start of the file.
        descending = "SELECT f.number FROM (SELECT number FROM events ORDER BY 1 DESC LIMIT 3) e CROSS JOIN fields f ON f.number = e.number"
        self.assertEqual(len(rows(self.shop, descending)), 3)

    def test_losses_and_processes(self):
        info = json.loads(subprocess.run([ARGS.nettrace, "info", "--json", self.shop], stdout=subprocess.PIPE, check=True).stdout)
        self.assertGreater(info["lost"], 0)
        self.assertEqual(rows(self.shop, "SELECT sum(count) FROM losses"), [[info["lost"]]])
        names = dict(rows(self.shop, "SELECT pid, name FROM processes"))
        self.assertEqual(names[1000], "/usr/bin/web")
        self.assertEqual(names[4000], "/usr/bin/größe")
        [[name]] = rows(self.shop, "SELECT DISTINCT process FROM events WHERE pid = 1000")
        self.assertEqual(name, "/usr/bin/web")

    def test_percentiles_are_close(self):
        durations = [duration for [duration] in rows(self.shop, "SELECT duration FROM activities WHERE stop NOT NULL ORDER BY 1")]
        [[low, middle, high]] = rows(self.shop, "SELECT percentile(duration, 0), percentile(duration, 50), percentile(duration, 100)"
                                                " FROM activities")
        self.assertEqual((low, high), (durations[0], durations[-1]))
        self.assertAlmostEqual(middle, durations[len(durations) // 2 - 1], delta=middle / 32)
        self.assertEqual(rows(self.shop, "SELECT percentile(duration, 5) FROM activities WHERE id = ''"), [[None]])
        query(self.shop, "SELECT percentile(duration, 101) FROM activities", expect=1)

    def test_options_select_events_for_all_tables(self):
        for options in (["--provider", "Shop.Web"], ["--pid", "1000"], ["--event", "Query"], ["--processes"], ["--account"],
                        ["--level", "2"]):
            with self.subTest(options=options):
                count = len(dump(*options, self.shop).splitlines())
                self.assertEqual(rows(*options, self.shop, "SELECT count(*) FROM events"), [[count]])
                self.assertEqual(rows(*options, self.shop, "SELECT count(DISTINCT number) FROM fields"), [[count]])

    def test_input_may_be_a_pipe_or_compressed(self):
        count = rows(self.shop, "SELECT count(*) FROM events a JOIN events b USING (number)")
        data = self.shop.read_bytes()
        sql = "SELECT count(*) FROM events a JOIN events b USING (number)"
        self.assertEqual(json.loads(query("--json", "-", sql, input=data).stdout), {"count(*)": count[0][0]})
        compressed = subprocess.run(["zstd", "-qc", self.shop], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(json.loads(query("--json", "-", sql, input=compressed).stdout), {"count(*)": count[0][0]})

    def test_damage_is_reported_after_the_rows(self):
        cut = self.folder / "cut.nettrace"
        cut.write_bytes(self.shop.read_bytes()[:-40])
        ran = query(cut, "SELECT count(*) FROM events", expect=1)
        self.assertIn("count(*)", ran.stdout)
        self.assertRegex(ran.stderr, r"^nettrace query: .*cut\.nettrace: ")
        self.assertRegex(query(self.folder / "none", "SELECT 1", expect=2).stderr, "none: cannot be opened: No such file")
        (self.folder / "text").write_text("text")
        query(self.folder / "text", "SELECT 1", expect=2)

    def test_statements_that_are_wrong_have_remedies(self):
        for sql, message in (("SELECT * FROM event", "no such table: event; the tables are events, fields, activities, "),
                             ("SELECT nam FROM events", "no such column: nam at character 8; put text in single quotes; "),
                             ('SELECT 1 FROM events WHERE name = "Query"', "no such column: Query at character 35; put text in single "),
                             ("SELECT FROM", 'near "FROM": syntax error at character 8; nettrace-query'),
                             ("", "no statement; example: SELECT "), ("SELECT 1; SELECT 2", "more than one statement; ")):
            with self.subTest(sql=sql):
                ran = query(self.shop, sql, expect=2)
                self.assertEqual(ran.stdout, "")
                self.assertTrue(ran.stderr.startswith(f"nettrace query: SQL: {message}"), ran.stderr)
        query(self.shop, "SELECT 1; -- a comment")
        self.assertIn("invalid time", query(self.shop, "SELECT ns('today')", expect=1).stderr)

    def test_statements_cannot_write(self):
        for sql in ("ATTACH 'made.db' AS made", "CREATE TABLE made (a)", "DROP VIEW losses", "PRAGMA temp_store = MEMORY", "BEGIN",
                    "INSERT INTO events VALUES (1)", "DELETE FROM losses", "SELECT load_extension('made')", "VACUUM INTO 'made.db'",
                    "CREATE TEMP VIEW made AS SELECT 1", "SELECT * FROM pragma_database_list"):
            with self.subTest(sql=sql):
                self.assertRegex(query(self.shop, sql, expect=2, cwd=self.folder).stderr, "SELECT|may not be modified|cannot")
        self.assertEqual([path for path in self.folder.iterdir() if "made" in path.name], [])
        names = [name for [name] in rows(self.shop, "SELECT name FROM pragma_table_info('events')")]
        self.assertEqual((names[0], names[-1]), ("number", "payload"))

    def test_memory_is_bounded(self):
        has_sanitizer = commands.has_sanitizer(ARGS.nettrace)
        many = " UNION ALL ".join(["SELECT 1"] * 90)
        for sql, expect in (("SELECT zeroblob(1000000000)", 1), ("SELECT group_concat(payload || printf('%.*c', 9000, 'x')) FROM events", 1),
                            ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400000)"
                             " SELECT count(*) FROM (SELECT printf('%.*c', 900, 'x') || i AS s FROM n ORDER BY s)", 0),
                            (f"SELECT count(*) FROM ({many}) a, ({many}) b, ({many}) c", 0),
                            ("SELECT " + "(" * 500 + "1" + ")" * 500, 2),
                            ("SELECT 1 FROM " + ", ".join(["events LEFT JOIN fields"] * 10) + " LIMIT 1", 1)):
            if has_sanitizer and "group_concat" in sql:
                continue  # with a sanitizer, each growth copies the whole text, which takes minutes
            with self.subTest(sql=sql[:60]):
                process = subprocess.Popen([ARGS.nettrace, "query", self.mixed, sql], stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(process.returncode, expect)
                # A sanitizer keeps memory that was freed, so the limit does not hold with it.
                if not has_sanitizer:
                    self.assertLess(used.ru_maxrss, 400 * MEGABYTE)

    def test_tables_are_aligned(self):
        text = query(self.shop, "SELECT name, number, related FROM events WHERE number IN (2, 100)").stdout
        head, first, second = text.splitlines()
        self.assertEqual(head.split(), ["name", "number", "related"])
        end = head.index("number") + 6
        self.assertEqual((first[:end].split()[1:], second[:end].split()[1:]), (["2"], ["100"]))
        self.assertEqual((first[end - 1], second[end - 1]), ("2", "0"))
        self.assertEqual(len({len(line) for line in (head, first, second)}), 1)
        aligned = query(self.shop, "SELECT name, thread FROM events").stdout.splitlines()
        self.assertEqual({line[aligned[0].index("thread") - 1] for line in aligned}, {" "})

    def test_formats_show_null(self):
        sql = "SELECT NULL AS a, '' AS b, 'x,\"y' AS c, x'00ff' AS d, 1.5 AS e, 9007199254740993 AS f, '=1+1' AS c"
        [head, row] = csv.reader(io.StringIO(query("--csv", self.shop, sql).stdout))
        self.assertEqual(head, ["a", "b", "c", "d", "e", "f", "c"])
        self.assertEqual(row, ["", "", 'x,"y', "00ff", "1.5", "9007199254740993", "'=1+1"])
        self.assertTrue(query("--csv", self.shop, sql).stdout.splitlines()[1].startswith(',"",'))
        self.assertEqual(json.loads(query("--json", self.shop, sql).stdout),
                         {"a": None, "b": "", "c": 'x,"y', "d": "00ff", "e": 1.5, "f": "9007199254740993", "c_2": "=1+1"})
        self.assertEqual(query(self.shop, "SELECT NULL, 'a\x1bb'").stdout.splitlines()[1].split(), ["NULL", "a\\u001bb"])
        self.assertEqual(query(self.shop, "SELECT name FROM events WHERE number = 0").stdout, "name\n")

    def test_wrong_usage(self):
        for words in ([], [self.shop], ["--csv", "--json", self.shop, "SELECT 1"], ["--no-such-option", self.shop, "SELECT 1"]):
            query(*words, expect=2)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    script.run_cases()
