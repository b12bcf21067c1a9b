#!/usr/bin/python3
"""Tests that the pages of docs/reference describe what the programs do: exit codes, keys of JSON, and the control
interface."""

import importlib.util
import json
import re
import subprocess
import unittest

from support import control
from support import script

ARGS = script.options(__doc__, "source", "nettrace", "eventheader", "nettraced", "server", "corpus", "instrumented")

CELL = re.compile(r"(?<!\\)\|")
NUMBER = re.compile(r"\b\d+\b")
TYPES = {"number": (int, float), "string": str, "time": str, "boolean": bool, "object": dict, "array": list}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
SUBCOMMAND = re.compile(r"^  ([a-z]+) ", re.MULTILINE)
# The list of exit codes in --help. Other words may come before it in its paragraph, and it may have several lines.
EXIT_CODES = re.compile(r"\bExit code: (.*?)(?:\n\n|\Z)", re.DOTALL)
PROGRAMS = {"nettrace": ARGS.nettrace, "eventheader": ARGS.eventheader, "nettraced": ARGS.nettraced}
PUT = re.compile(r'(?:Put\w+\(&?json, |[Kk]ey\()"(\w+)"')


def read(path):
    return (ARGS.source / path).read_text(encoding="utf-8")


def run(*command, expected=(0,), **options):
    """Runs a command, which must end with an expected exit status. Returns its standard output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=60, **options)
    assert done.returncode in expected, f"{command}: exit status {done.returncode}, expected {expected}: {done.stderr}"
    return done.stdout


def subcommands(text):
    """Returns the part of --help that lists subcommands."""
    return text.partition("Subcommands:\n")[2].partition("\n\n")[0]


def tables(document):
    """Returns the tables below each heading of a document. A table is a list of its rows without the head."""
    result, heading, rows = {}, None, None
    for line in read(f"docs/reference/{document}").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("|"):
            rows = None
        elif rows is None:
            rows = []
            result.setdefault(heading, []).append(rows)
            head = 2
        if rows is not None:
            if head:
                head -= 1
            else:
                rows.append([cell.strip() for cell in CELL.split(line.strip())[1:-1]])
    return result


class ExitCodesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        document = tables("exit-codes.md")
        cls.by_number = {int(code) for code, _ in document["By number"][0]}
        cls.by_program, cls.pages = {}, {}
        program = None
        for name, code, _ in document["By program"][0]:
            if name:
                program, page = re.fullmatch(r"\[(.+)\]\(\.\./man/(.+)\)", name).groups()
                cls.pages.setdefault(page, []).append(program)
            cls.by_program.setdefault(program, set()).update({code} - {"any"})

    def test_numbers_match_the_sources(self):
        numbers = set(map(int, re.findall(r"constexpr int kExit\w+ = (\d+);", read("tools/cli/exit_codes.h"))))
        self.assertEqual(self.by_number, numbers)
        self.assertGreater(len(numbers), 8)

    def test_programs_have_the_numbers_of_their_pages(self):
        self.assertGreater(len(self.pages), 10)
        for page, programs in self.pages.items():
            with self.subTest(page=page):
                section = re.search(r"^\.Sh EXIT STATUS\n(.*?)^\.Sh ", read(f"docs/man/{page}"), re.MULTILINE | re.DOTALL)[1]
                section = re.sub(r"^\.Bl .*$", "", section, flags=re.MULTILINE)
                shown = set().union(*(self.by_program[program] for program in programs))
                self.assertEqual(shown, set(NUMBER.findall(section)))

    def test_program_pages_are_complete(self):
        pages = {path.name for path in (ARGS.source / "docs/man").iterdir() if path.suffix in (".1", ".8")}
        self.assertEqual(set(self.pages), pages)

    def test_subcommands_match_the_help(self):
        for program, command in (("nettrace", ARGS.nettrace), ("eventheader", ARGS.eventheader)):
            listed = {f"{program} {word}" for word in SUBCOMMAND.findall(subcommands(run(command, "--help")))}
            listed -= {f"{program} completion"}
            self.assertGreater(len(listed), 5)
            self.assertEqual({name for name in self.by_program if name.startswith(program + " ")}, listed)

    def help_of(self, name):
        """Returns what --help prints for a program, or for a subcommand and all its own subcommands."""
        program, *words = name.split()
        text = run(PROGRAMS[program], *words, "--help")
        if not words:
            return text
        own = SUBCOMMAND.findall(subcommands(text))
        return text + "".join(run(PROGRAMS[program], *words, word, "--help") for word in own)

    def test_help_has_the_numbers_of_the_document(self):
        for name, documented in self.by_program.items():
            with self.subTest(program=name):
                shown = set().union(*(NUMBER.findall(codes) for codes in EXIT_CODES.findall(self.help_of(name))))
                self.assertEqual(shown, documented)

    def test_help_of_eventheader_has_the_numbers_of_its_subcommands(self):
        [shown] = EXIT_CODES.findall(run(ARGS.eventheader, "--help"))
        documented = set().union(*(codes for name, codes in self.by_program.items() if name.startswith("eventheader ")))
        self.assertEqual(set(NUMBER.findall(shown)), documented)

    def test_numbers_by_number_are_those_by_program(self):
        # The row 128 is for the sums of 128 and the number of a signal.
        documented = {int(code) for codes in self.by_program.values() for code in codes}
        self.assertEqual(documented, self.by_number - {128})

    def test_help_and_wrong_usage_have_their_numbers(self):
        for name in self.by_program:
            with self.subTest(program=name):
                program, *words = name.split()
                run(PROGRAMS[program], *words, "--help")
                run(PROGRAMS[program], *words, "--no-such-option", expected=(2,))
                self.assertLessEqual({"0", "2"}, self.by_program[name])


class JsonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tables = tables("json.md")

    def table(self, heading, number=0):
        """Returns the types of each key in a table, and whether the key is optional."""
        return {key.strip("`"): (types.replace(", optional", "").split(", "), "optional" in types)
                for key, types, _ in self.tables[heading][number]}

    def check(self, keys, value):
        """Checks that an object has the required keys and no unknown ones, and that each value has a documented type. A
        number may be a string of digits."""
        self.assertLessEqual(set(value), set(keys))
        self.assertLessEqual({key for key, (_, optional) in keys.items() if not optional}, set(value))
        for key, member in value.items():
            types, _ = keys[key]
            with self.subTest(key=key, value=member):
                if member is None:
                    self.assertIn("null", types)
                elif types[0] == "number" and isinstance(member, str):
                    self.assertRegex(member, r"^-?\d+$")
                else:
                    self.assertIsInstance(member, TYPES[types[0]])
                    self.assertEqual(isinstance(member, bool), types[0] == "boolean")
                if types[0] == "time" and member is not None:
                    self.assertRegex(member, TIME)

    def check_lines(self, heading, text):
        """Checks that each line is an object with the keys of the heading's table; returns the objects, and the keys
        that occurred."""
        keys, objects = self.table(heading), [json.loads(line) for line in text.splitlines()]
        for value in objects:
            self.check(keys, value)
        return objects, set().union(*objects)

    def files(self):
        files = sorted(path for path in ARGS.corpus.iterdir() if path.is_file())
        self.assertGreater(len(files), 5)
        return files

    def test_dump(self):
        seen = set()
        for file in self.files():
            with self.subTest(file=file.name):
                text = run(ARGS.nettrace, "dump", "--json", "--processes", "--account", "--stacks", file, expected=(0, 1))
                seen |= self.check_lines("nettrace dump", text)[1]
        # Both keys occur in no file of the test: no thread has threadInfo, and each payload fits its fields.
        self.assertLessEqual(set(self.table("nettrace dump")) - seen, {"threadInfo", "error"})

    def test_info(self):
        elements = self.elements()
        for file in self.files():
            with self.subTest(file=file.name):
                [value], _ = self.check_lines("nettrace info", run(ARGS.nettrace, "info", "--json", file, expected=(0, 1)))
                for array, keys in elements.items():
                    for element in value[array]:
                        self.check(keys, element)

    def elements(self):
        """Returns the documented keys of the elements of each array, by the key of the array."""
        result, array = {}, None
        for name, key, types, _ in self.tables["Losses"][0]:
            array = name.strip("`") or array
            result.setdefault(array, {})[key.strip("`")] = (types.replace(", optional", "").split(", "), "optional" in types)
        return result

    def test_top(self):
        columns, member = {}, None
        for name, keys, types, _ in self.tables["nettrace top"][1]:
            member = name or member
            for key in re.findall(r"`(\w+)`", keys):
                columns.setdefault(member, {})[key] = (types.split(", "), False)
        of_view, of_row, of_durations, of_minute = columns.values()
        names = ("provider", "name", "pid", "tid", "process", "thread", "cpu", "host", "function", "self")
        seen = set()
        for file in self.files():
            with self.subTest(file=file.name):
                [value], _ = self.check_lines("nettrace top", run(ARGS.nettrace, "top", "--json", "--max-rows", 2, file, expected=(0, 1)))
                for view in (value[key] for key in value if re.match("by[A-Z]", key)):
                    self.check(of_view, view)
                    for row in view["rows"]:
                        self.check({key: (types, key in names) for key, (types, _) in of_row.items()}, row)
                        self.check(of_durations, row["durations"])
                        for minute in ("lastMinute", "minuteBefore"):
                            self.check(of_minute, row["durations"][minute])
                        seen |= set(row)
                    if view["others"]:
                        self.assertEqual(set(view["others"]), set(of_row) - set(names) | {"rows"})
        self.assertEqual(seen, set(of_row) - {"host"})  # a row has a host only if the files are from several hosts

    def test_verify(self):
        found = "".join(run(ARGS.nettrace, "verify", "--json", file, expected=(0, 1)) for file in self.files())
        self.assertTrue(self.check_lines("nettrace verify", found)[0])

    def test_ship_has_the_keys_of_its_source(self):
        self.assertEqual(list(self.table("nettrace ship")), PUT.findall(read("tools/nettrace/ship.cc")))

    def test_ctl(self):
        with control.serving(ARGS.server) as path:
            for words in (["list"], ["status"]):
                text = run(ARGS.nettrace, "ctl", "--socket", path, *words, "--json")
                self.assertTrue(self.check_lines("nettrace ctl list, status, wait", text)[0])

    def test_ctl_services(self):
        heading = "nettrace ctl services"
        with control.serving(ARGS.server) as path:
            [value], _ = self.check_lines(heading, run(ARGS.nettrace, "ctl", "--socket", path, "services", "--json"))
        for number, list_of in ((1, "services"), (2, "refused")):
            self.assertTrue(value[list_of])
            for entry in value[list_of]:
                self.check(self.table(heading, number), entry)

    def test_name_parse(self):
        text = run(ARGS.eventheader, "name", "parse", "--json", "Shop_L4K1", "Shop_L2Kff00Gabc")
        self.assertEqual(len(self.check_lines("eventheader name parse", text)[0]), 2)

    def test_catalog(self):
        tracepoints, _ = self.check_lines("eventheader catalog", run(ARGS.eventheader, "catalog", "--json", ARGS.instrumented))
        keys, fields = self.table("eventheader catalog", 1), set()

        def walk(value, wanted):
            self.assertLessEqual(set(wanted), set(value))
            self.check({key: (keys[key][0], False) for key in value}, value)
            fields.update(value)
            for field in value.get("fields", []):
                walk(field, ("name", "type", "array"))

        for tracepoint in tracepoints:
            for event in tracepoint["events"]:
                walk(event, ("name", "id", "version", "opcode", "tag", "attributes", "fields"))
        self.assertEqual(fields, set(keys))

    def test_doctor(self):
        text = run(ARGS.eventheader, "doctor", "--json", "--for", 1, expected=(0, 6))
        self.check_lines("eventheader doctor", text)

    def test_output_that_needs_a_kernel_has_the_keys_of_the_sources(self):
        account = PUT.findall(read("tools/trace/account_summary.cc"))
        record = re.search(r"^void PrintJson\(.*?^\}", read("tools/nettrace/record.cc"), re.MULTILINE | re.DOTALL)[0]
        elements = {key for keys in self.elements().values() for key in keys}
        self.assertEqual(set(self.table("nettrace record")), set(PUT.findall(record)) | set(account) - elements)
        self.assertEqual(elements, set(re.findall(r'AccountTime\(json, "(\w+)"', read("tools/trace/account_summary.cc"))) |
                         set(account) - set(self.table("nettrace record")))
        self.assertEqual(PUT.findall(record)[:3], ["events", "lost", "hits"])
        shown = re.findall(r'"(\w+)"', read("tools/eventheader/tracepoint_json.h"))
        shown = [key for key in shown if key.islower() or key in ("eventHeader", "usedBy")]
        self.assertEqual(set(self.table("eventheader list")), set(shown) | {"persistent"})
        self.assertEqual(set(self.table("eventheader watch")), set(PUT.findall(read("tools/eventheader/watch.cc"))))


class ControlTest(unittest.TestCase):
    def blocks(self, language):
        return re.findall(rf"^```{language}\n(.*?)^```$", read("docs/reference/control.md"), re.MULTILINE | re.DOTALL)

    def test_interface_matches_the_daemon(self):
        [shown] = self.blocks("text")
        said = re.search(r'kCollectorDescription =\s*R"\((.*?)\)";', read("tools/control/messages.cc"), re.DOTALL)[1]
        self.assertEqual(shown, said)

    def test_methods_need_the_access_in_the_table(self):
        access = {who: re.findall(r"`(\w+)`", methods) for methods, who in tables("control.md")["The socket"][2]}
        table = re.findall(r'\{kControlInterface, "(\w+)", Access::k(\w+)', read("tools/control/dispatcher.cc"))
        for who in ("look", "change"):
            self.assertEqual(access[who], [method for method, needs in table if needs.lower() == who])

    def test_limits_match_the_sources(self):
        limits = dict(tables("control.md")["The socket"][1])
        messages, server = read("tools/control/messages.h"), read("tools/control/server.h")
        self.assertIn("kMaxLookRequest = std::size_t{16} << 10", messages)
        self.assertIn("kMaxRequest = std::size_t{1} << 20", messages)
        self.assertEqual(limits["a request"], '16 KiB from a client that may only call methods with access "look", otherwise 1 MiB')
        self.assertIn("kMaxReply = std::size_t{64} << 20", messages)
        self.assertEqual(limits["a reply"], "64 MiB")
        depth = re.search(r"kMaxDepth = (\d+)", read("tools/control/messages.cc"))[1]
        self.assertEqual(limits["nesting of objects and arrays"], depth)
        numbers = re.findall(r"(?:max_connections|max_connections_of_user|reserved_connections) = (\d+)", server)
        self.assertEqual(NUMBER.findall(limits["connections"]), numbers)
        self.assertIn("message_timeout = absl::Seconds(10)", server)
        self.assertIn("idle_timeout = absl::Minutes(2)", server)

    def test_the_example_is_a_client(self):
        specification = importlib.util.spec_from_file_location("example", ARGS.source / "examples/control.py")
        example = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(example)
        with control.serving(ARGS.server) as path:
            sessions = example.call(str(path), "net.nettrace.Collector.List")["sessions"]
            self.assertTrue(sessions)
            lines = run(ARGS.source / "examples/control.py", path).splitlines()
            self.assertEqual([line.split()[:2] for line in lines], [[session["name"], session["state"]] for session in sessions])
            with self.assertRaisesRegex(RuntimeError, "net.nettrace.Collector.NotFound: "):
                example.call(str(path), "net.nettrace.Collector.Status", session="no-such-session")
            [shown] = self.blocks("text")
            self.assertEqual(example.call(str(path), "org.varlink.service.GetInterfaceDescription",
                                          interface="net.nettrace.Collector")["description"], shown)


if __name__ == "__main__":
    script.run_cases()
