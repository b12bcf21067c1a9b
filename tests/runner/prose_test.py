"""Tests of the lint for words and phrases in comments, help, manual pages and documents."""

import pathlib
import sys

import pytest

from testing import lint
from testing import prose
from testing import suites

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

# The bad and good examples of CONTRIBUTING.md, and more.
EXAMPLES = [
    ("started, stopped, tried again, and told of",
     "Runs one session: starts, stops and retries it, and reports its status."),
    ("What an earlier loss was told with is not told again.",
     "Losses within this time of a log message are added to the next message."),
    ("Who remembers entries, and does not tell of their use, is to forget them all then: those in use are told of once "
     "more.",
     "Callers that cache entries must clear the cache when this changes, so that entries in use are marked as used "
     "again."),
    ("Who is over a share loses what it has not used for the longest time",
     "A process over its share loses its least recently used entries."),
    ("killed at 200 moments that nobody chose", "killed 200 times at random"),
    ("a clock that nobody sets", "CLOCK_MONOTONIC"),
    ("what it has of them stays in memory even if it is dropped: so long, there may be as much again",
     "A snapshot keeps its sections while it is written, so memory use may double for that time."),
    ("The cgroup, one then, need not be there yet, and may go and come again",
     "Wait for the cgroup to appear, and follow it when it is recreated (needs exactly one --cgroup)"),
    ("so it is without a terminal on standard output", "This is the default if standard output is not a terminal."),
    ("10min: is no time; 500ms, 10s and 1h30m are some", 'invalid duration "10min"; examples: 500ms, 10s, 1h30m'),
    ("is named with something else than up to 64 letters, digits, '_', '-' and '.', of which a letter or digit is the "
     "first",
     "invalid name; use 1 to 64 letters, digits, '_', '-' or '.', and start with a letter or digit"),
    ("no -e stands before it, of whose events it is to be", "--filter must follow the -e that it applies to"),
    ("the settings are wrong and those before hold", "invalid settings; keeping the previous ones"),
    ("Whether all is well, the service knows itself", "The service reports its own health:"),
    ("shows them and who has them enabled", "shows them and which tools have enabled them"),
    ("Not noticed is only a descriptor that was closed and whose number was reused",
     "The library cannot detect a descriptor that was closed and whose number was reused."),
]
# Bad examples that no rule for words can find, and the reasons.
NOT_FOUND = {
    "the settings are wrong and those before hold": '"those before" is right where the sentence has the noun',
    "Whether all is well, the service knows itself": "the order of the words is wrong, not a word",
}
# A sentence for each word of the list in CONTRIBUTING.md.
WORDS = {
    "told": "the caller is told about it",
    "tell": "the counters tell how full it is",
    "tells": "a callback tells the caller",
    "nobody": "nobody reads it",
    "somebody": "until somebody reads it",
    "anybody": "it helps anybody",
    "whoever": "whoever waits is notified",
    "is to be": "the file is to be deleted",
    "are to be": "files are to be deleted",
    "of its own": "a thread of its own",
    "of their own": "threads of their own",
    "such": "if there are such, they go first",
    "so many": "the last so many events",
    "so much": "a block of so much",
    "so long": "a reader waits so long",
    "anew": "rows are written anew",
    "by and by": "it grows by and by",
    "likewise": "the reader likewise",
    "meanwhile": "the reader meanwhile waits",
    # Phrases that the rules name.
    "of which": "77 bytes, of which 14 are values",
    "of those": "the ids of those are free",
    "of those that": "one of those that wait",
    "of whose": "a file of whose rows it has none",
    "of more": "losses of more in one interval",
    "one then": "a file, one then",
    "so it is": "so it is with arrays",
    "hears of": "it hears of changes",
    "say of": "what the rows say of it",
    "has to do with": "whatever has to do with perf",
    "come and go": "processes come and go",
    "else than": "anything else than this",
    "and who": "the names and who uses them",
    "Who": "It ends. Who waits is notified",
    "Not noticed is": "Not noticed is a change",
    ": is no": "x: is no time",
    "are some": "1 and 2 are some",
}
BEGINNINGS = ["Of", "As", "What", "Those", "These", "Its", "Their", "So", "Such", "Whose", "Who", "Has", "Is",
              "The same"]


def comment(text):
    return "include/nettrace/example.h", f"#pragma once\n// {text}\nint Example();\n"


def help_text(text):
    escaped = text.replace('"', '\\"')
    return "tools/nettrace/example.cc", f'app.add_option("name", &name,\n               "{escaped}");\n'


def manual_page(text):
    return "docs/man/example.1", f".Dd January 1, 2026\n.Sh DESCRIPTION\nA sentence.\n.Pp\n{text}\n"


def document(text):
    return "docs/example.md", f"# Example\n\n{text}\n"


PLACES = [comment, help_text, manual_page, document]
OTHERS = [place for place in PLACES if place is not comment]


def words(path, source):
    """Returns the words that the lint finds, in their order."""
    return [match.word for match in prose.matches_of(path, source)]


def lines(path, source):
    return [match.line for match in prose.matches_of(path, source)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("bad", [bad for bad, _ in EXAMPLES])
def test_finds_bad_examples(place, bad):
    if bad in NOT_FOUND:
        assert words(*place(bad)) == []
    else:
        assert words(*place(bad))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("good", [good for _, good in EXAMPLES])
def test_accepts_good_examples(place, good):
    assert words(*place(good)) == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", WORDS)
def test_finds_each_word(place, word):
    found = [found.lower() for found in words(*place(f"Here, {WORDS[word]}" if word[0].islower() else WORDS[word]))]
    assert word.lower() in found


@pytest.mark.parametrize("word", BEGINNINGS)
def test_finds_beginnings_of_comments_only(word):
    assert words(*comment(f"{word} rows that wait")) == [word]
    assert words(*comment(f"Rows: {word.lower()} rows that wait")) == []
    for place in OTHERS:
        assert words(*place(f"{word} rows that wait?")) == []


@pytest.mark.parametrize("text", [
    "Artificial intelligence teller foretold",
    "IsEmpty and OfType return AsText",
    "Wait as long as it reads, so long as it is open",
    "Events such as these, and such events",
    "The format as such is stable",
    "It is so large that it wraps",
    "There are so many that a table overflows",
    "An event of more than 8184 bytes",
    "Messages, each of which ends with NUL",
    "The header is const, so it is shared",
    "The names of those files",
    "A user who waits",
    "The file: it is no link",
])
def test_accepts_right_uses(text):
    for place in PLACES:
        assert words(*place(text)) == []


def test_match_names_file_line_word_and_remedy():
    [match] = prose.matches_of(*comment("Returns what nobody\n// reads."))
    assert str(match).startswith('include/nettrace/example.h:2: "nobody": ')
    assert len(str(match)) > len('include/nettrace/example.h:2: "nobody": ')
    assert match.text == "// Returns what nobody"


def test_finds_phrases_across_line_ends():
    for path, source in (comment("Blocks, by\n// and by."), manual_page("it grows by\nand by"),
                         document("it grows by\nand by"), ("tools/a.cc", 'Print("it grows by "\n      "and by");')):
        assert words(path, source) == ["by and by"]


def test_comment_is_all_adjacent_lines():
    assert lines("a.cc", "// Reads rows of a file, returns\n// Those that match.\n\n// These rows.\nint x;\n") == [4]
    assert lines("a.cc", "int a;  // bytes of\n        // These rows\nint b;  // These rows\n// These rows\n") == [3, 4]
    assert lines("a.c", "/* Reads\n * These rows */ int f(); /* These rows */\n") == [2]
    assert lines("a.py", "x = 1  # Rows\n# These rows\n# These rows\n") == [2]
    assert lines("a.sh", "true # These rows\n# Rows\n# These rows\n") == [1]


def test_lexer_of_c_respects_strings():
    source = '''\
const char* a = "// nobody";
const char b = '"'; // nobody
const auto c = R"x(
// nobody "
)x"; int d = 1'000'000; /* nobody
nobody */ char e = u8'\\''; // anew
// continued \\
nobody
#include "nobody here.h"
'''
    assert list(zip(lines("tests/a.cc", source), words("tests/a.cc", source))) == [
        (2, "nobody"), (5, "nobody"), (6, "anew"), (6, "nobody"), (8, "nobody")]


def test_strings_of_product_code_with_a_space_are_read():
    source = 'Print("nobody", "for no"\n"body", "for nobody", R"(a\nnobody)",\n"a\\nnobody", L"for nobody");\n'
    for folder in ("include", "libeventheader", "libnettrace-writer", "tools"):
        assert lines(f"{folder}/a.cc", source) == [1, 2, 3, 4, 4]
    for folder in ("tests", "examples"):
        assert lines(f"{folder}/a.cc", source) == []


def test_python_comments_and_docstrings_are_read():
    source = '''\
"""Its rows."""

X = "for nobody"  # nobody


def f():
    """Reads.

    What nobody reads.
    """
    return "nobody here"
'''
    assert list(zip(lines("a.py", source), words("a.py", source))) == [(1, "Its"), (3, "nobody"), (9, "nobody")]


def test_comments_of_shell_scripts_are_read():
    source = '''#!/bin/sh
echo "# nobody" '# nobody' x#nobody "${x#nobody}" $# # nobody
cat <<'TEXT' # anew
# nobody
TEXT
echo "
# nobody"
# nobody
'''
    expected = [(2, "nobody"), (3, "anew"), (8, "nobody")]
    assert list(zip(lines("a.sh", source), words("a.sh", source))) == expected
    assert list(zip(lines("scripts/a", source), words("scripts/a", source))) == expected


def test_comments_of_meson_are_read():
    assert lines("tests/meson.build", "x = '# nobody'  # nobody\ny = '''\n# nobody'''\n# nobody\n") == [1, 4]


def test_code_in_documents_is_not_read():
    text = "Text `nobody` and ``nobody ` nobody`` [link](nobody.md).\n\n```\nnobody\n```\n\n    nobody\n\n    nobody\n"
    assert lines("a.md", text + "\nnobody\n") == [11]
    assert lines("a.md", "| a | `nobody` |\n|---|---|\n| nobody | b |\n") == [3]
    assert lines("a.md", "- entry\n\n  nobody\n") == [3]
    assert words("a.cc", "// Returns `nobody`.\n") == []


def test_phrases_do_not_span_cells_and_entries():
    assert words("a.md", "| a | by and |\n| by | c |\n\n- one\n- then\n") == []


def test_code_in_manual_pages_is_not_read():
    source = '''.\\" nobody
.Sh DESCRIPTION
.Nm nobody
writes
.Pa nobody .
.It Fl -nobody Ar nobody
.Bd -literal -offset indent
nobody
.Ed
.Dl nobody
.Em nobody
.It Sy nobody
\\fBnobody\\fR
'''
    assert lines("docs/man/a.1", source) == [11, 12, 13]


@pytest.mark.parametrize("path", ["a.txt", "debian/changelog", "a.json", "tests/a.1"])
def test_other_files_are_not_read(path):
    assert prose.matches_of(path, "// nobody\n# nobody\n") is None


@pytest.fixture(name="tree")
def fixture_tree(tmp_path):
    (tmp_path / "a.cc").write_text("// Reads what nobody reads.\nint a;\n// Reads what nobody reads, and anew.\n")
    (tmp_path / "a.txt").write_text("nobody")
    return tmp_path


def entry(line="// Reads what nobody reads.", file="a.cc"):
    return f"# Why lines are here.\n\nfile: {file}\nline: {line}\nwhy: a test\n"


def test_all_matches_of_an_allowed_line_are_left_out(tree):
    matches = prose.check(["a.cc", "a.txt"], "", tree).matches
    assert {path: len(found) for path, found in matches.items()} == {"a.cc": 3}
    report = prose.check(["a.cc"], entry(), tree)
    assert [match.line for match in report.matches["a.cc"]] == [3, 3]
    report = prose.check(["a.cc"], entry() + "\n" + entry("// Reads what nobody reads, and anew."), tree)
    assert (report.matches, report.errors) == ({"a.cc": []}, [])


@pytest.mark.parametrize("unused", [entry("int a;"), entry("// Reads what nobody"), entry(file="b.cc")])
def test_unused_entry_is_an_error(tree, unused):
    [error] = prose.check(["a.cc"], unused, tree).errors
    assert error.startswith(f"{prose.ALLOWED}:3: ")


@pytest.mark.parametrize("wrong", ["file: a.cc\nline: x\n", "a.cc\n", "file: a.cc\nline: x\nwhy: \n",
                                   "line: x\nfile: a.cc\nwhy: y\n"])
def test_entry_of_another_form_is_an_error(tree, wrong):
    [error] = prose.check(["a.cc"], wrong, tree).errors
    assert error.startswith(f"{prose.ALLOWED}:1: ")


def test_suite_lint_has_a_case_for_each_file(tree, monkeypatch):
    monkeypatch.setattr(prose, "check_tree", lambda: prose.check(["a.cc", "a.txt"], "", tree))
    cases = {case.name: case for case in lint._prose("lint")}
    assert sorted(cases) == ["lint/prose a.cc", f"lint/prose {prose.ALLOWED}"]
    assert [case.outcome for case in cases.values()] == ["failed", "passed"]
    assert "a.cc:3:" in cases["lint/prose a.cc"].detail
    assert "prose" in suites.listing()


@pytest.fixture(name="run")
def fixture_run(tree, monkeypatch, capsys):
    """Runs the program for the tree; returns its status and the lines that it prints."""
    monkeypatch.setattr(prose, "check_tree", lambda: prose.check(["a.cc", "a.txt"], allowed[0], tree))
    allowed = [""]

    def run(*arguments, allow=""):
        allowed[0] = allow
        monkeypatch.setattr(sys, "argv", ["prose.py", *arguments])
        return prose.main(), capsys.readouterr().out.splitlines()
    return run


def test_program_prints_matches(run):
    status, printed = run()
    assert (status, [line.split(" ")[0] for line in printed]) == (1, ["a.cc:1:", "a.cc:3:", "a.cc:3:"])
    assert run("tests") == (0, [])
    status, printed = run("tests", allow=entry("int a;"))
    assert (status, printed[0].startswith(f"{prose.ALLOWED}:3: ")) == (1, True)


def test_program_counts_matches_of_folders(run):
    assert run("--count") == (0, ["     3 .", "     3 in all"])
