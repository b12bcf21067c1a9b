"""Tests of the choice of the sources that clang-tidy and the compiler read, and of their groups."""

import json
import subprocess

import pytest

from testing import configuration
from testing import lint

NAMESPACES = lint.re.compile(rb"\b(?:tools|trace) ?:: ?")
SOURCE = b"""// A comment.
#include "tools/common/text.h"

namespace tools {
namespace {

constexpr int kMany = 1'000'000;  // many
constexpr char kText[] = R"(// no comment " )";

}  // namespace

int f(char c) { return c == '"' ? tools::g("// text", kMany) : kMany; }

}  // namespace tools
"""


def is_same(old, new):
    source = SOURCE.replace(old, new)
    assert source != SOURCE
    return lint._code(source, NAMESPACES) == lint._code(SOURCE, NAMESPACES)


@pytest.mark.parametrize("old, new", [
    (b"// A comment.", b"/* Another\n * one. */"),
    (b"// many", b"// more"),
    (b'#include "tools/common/text.h"\n', b'#include "tools/trace/text.h"\n#include <string>\n'),
    (b"namespace tools {", b"namespace trace {"),
    (b"namespace tools {", b"namespace tools::trace {"),
    (b"tools::g", b"trace::g"),
    (b"tools::g", b"g"),
    (b'"// text"', b'"a \\" text"'),
    (b'"// text"', b'"text"\n    " and more"'),
    (b'// no comment " )"', b'another text)"'),
    (b"{ return", b"{\n  return"),
])
def test_other_lines_are_no_other_code(old, new):
    assert is_same(old, new)


@pytest.mark.parametrize("old, new", [
    (b"1'000'000", b"1'000'001"),
    (b"'\"'", b"'\\''"),
    (b"kMany) : kMany", b"kMany) : 2"),
    (b"tools::g", b"std::g"),
    (b"int f", b"long f"),
    (b"// many", b"// NOLINT"),
    (b"}  // namespace\n", b"int h();\n}  // namespace\n"),
])
def test_other_code_counts(old, new):
    assert not is_same(old, new)


@pytest.fixture(name="tree")
def fixture_tree(tmp_path, monkeypatch):
    """Returns a function that commits files, with a date that is given in hours. The lint reads this work tree."""
    monkeypatch.setattr(lint, "REPOSITORY", tmp_path)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)

    def commit(hours, **files):
        for name, text in files.items():
            path = tmp_path / "src" / name.replace("_", ".")
            path.parent.mkdir(exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        date = f"{1_700_000_000 + 3600 * hours} +0000"
        subprocess.run(["git", "add", "--all"], cwd=tmp_path, check=True)
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "--message=x"],
                       cwd=tmp_path, env={"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date, "PATH": "/usr/bin:/bin"},
                       check=True)
        return tmp_path
    return commit


LONG = "".join(f"int f{number}();\n" for number in range(50))


def test_all_sources_count_if_no_commit_is_older(tree):
    tree(0, a_cc="int a;\n", b_h="int b;\n")
    tree(1, a_cc="int b;\n")
    assert {"src/a.cc", "src/b.h"} <= lint._changed()


def test_sources_that_older_commits_changed_do_not_count(tree):
    tree(0, a_cc="int a;\n", b_cc="int b;\n", c_cc="int c;\n")
    tree(1, a_cc="int aa;\n")
    tree(14, b_cc="int bb;\n", c_cc="// Comment.\nint c;\n")
    assert lint._changed() == {"src/b.cc"}


def test_changes_that_are_not_committed_count(tree):
    tree(0, a_cc="int a;\n", b_cc="int b;\n")
    folder = tree(14, c_txt="")
    (folder / "src/a.cc").write_text("int aa;\n")
    (folder / "src/new.cc").write_text("int n;\n")
    assert lint._changed() == {"src/a.cc", "src/new.cc"}


def test_a_move_counts_only_if_the_code_changes(tree):
    tree(0, a_cc="namespace one {\n" + LONG + "}\n", b_cc=LONG + "int b;\n")
    tree(14, a_cc=None, b_cc=None, c_cc='#include "c.h"\nnamespace two {\n' + LONG + "}\n", d_cc=LONG + "int d;\n")
    assert lint._changed() == {"src/d.cc"}


def test_a_changed_header_is_read_through_one_source(tree):
    tree(0, a_h="int a;\n", a_cc='#include "src/a.h"\n', b_cc='#include "src/a.h"\n#include "src/c.h"\n',
         c_h="int c;\n", d_h="int d;\n", e_cc='#include "src/c.h"\n')
    tree(14, a_h="int aa;\n", c_h="int cc;\n", d_h="int dd;\n", e_cc='#include "src/c.h"\nint e;\n')
    assert {name for name in lint._changed() if name.endswith(".cc")} == {"src/a.cc", "src/e.cc"}


def test_changed_sources_and_those_that_include_changed_headers_are_compiled_alone(tree):
    tree(0, a_h="int a;\n", a_cc='#include "src/a.h"\n', b_cc='#include "src/a.h"\n', c_cc="int c;\n", d_cc="int d;\n",
         e_h="int e;\n", e_cc='#include "src/e.h"\n')
    folder = tree(14, a_h="#include <map>\nint a;\n", c_cc="#include <string>\nint c;\n", e_h="// Comment.\nint e;\n")
    (folder / "src/new.cc").write_text("int n;\n")
    assert {name for name in lint._touched() if name.endswith(".cc")} == {"src/a.cc", "src/b.cc", "src/c.cc", "src/new.cc"}


def entry_of(source, program):
    return {"directory": str(lint.REPOSITORY / "build-lint"), "file": f"../{source}",
            "command": f"ccache clang++-14 -I.. -o {program}.p/{source}.o -c ../{source}"}


def test_groups_are_of_one_program_and_of_limited_size(tmp_path):
    sources = [f"tools/a/{number}.cc" for number in range(lint.GROUP_SIZE + 2)] + ["tools/b/x.cc"]
    commands = {source: entry_of(source, source.split("/")[1]) for source in sources}
    groups = lint._groups(sources, commands, tmp_path)
    assert [len(group.sources) for group in groups] == [lint.GROUP_SIZE, 2, 1]
    assert sorted(source for group in groups for source in group.sources) == sorted(sources)
    assert groups[2].entry == commands["tools/b/x.cc"]
    assert groups[0].entry["command"].endswith(f" -c {groups[0].entry['file']}")


def test_groups_are_of_one_folder_and_language(tmp_path):
    sources = ["tools/a/x.c", "tools/a/x.cc", "tools/a/y.cc", "tools/b/x.cc"]
    groups = lint._groups(sources, {source: entry_of(source, "program") for source in sources}, tmp_path)
    assert [group.sources for group in groups] == [["tools/a/x.c"], ["tools/a/x.cc", "tools/a/y.cc"], ["tools/b/x.cc"]]


@pytest.fixture(name="sources")
def fixture_sources(tmp_path, monkeypatch):
    """Returns a function that runs the lint for two sources in one group, and returns its cases. The function's argument
    is the end of the name of the source in which clang-tidy finds something, or () if it finds nothing."""
    monkeypatch.setattr(lint, "full", False)
    monkeypatch.setattr(lint, "_changed", lambda: {"tools/a.cc", "tools/b.cc"})
    monkeypatch.setattr(configuration.LINT, "folder", tmp_path)
    commands = {name: entry_of(name, "a") for name in ("tools/a.cc", "tools/b.cc")}

    def read(wrong):
        def run_tidy(entry, _folder, without=""):
            if without:
                assert entry in json.loads((tmp_path / "tidy/compile_commands.json").read_text())
                return "wrong" if wrong else None
            return "wrong" if entry["file"].endswith(wrong) else None

        monkeypatch.setattr(lint, "_run_tidy", run_tidy)
        return [(case.name, case.outcome, case.detail) for case in lint._tidy("lint", commands)]
    return read


def test_a_clean_group_is_a_case_for_each_source(sources):
    assert sources(()) == [("lint/clang-tidy tools/a.cc", "passed", ""), ("lint/clang-tidy tools/b.cc", "passed", "")]


def test_sources_of_a_group_with_findings_are_read_one_by_one(sources):
    assert sources("b.cc") == [("lint/clang-tidy tools/a.cc", "passed", ""), ("lint/clang-tidy tools/b.cc", "failed", "wrong")]


def test_a_source_that_needs_an_include_of_another_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(configuration.LINT, "folder", tmp_path)
    (tmp_path / "a.cc").write_text("#include <string>\nstd::string A() { return {}; }\n")
    (tmp_path / "b.cc").write_text("std::string B() { return {}; }\n")
    (tmp_path / "test.cc").write_text("no code\n")
    commands = {source: {"directory": str(tmp_path), "file": name, "command": f"c++ -o {name}.o -c {name}"}
                for source, name in (("tools/a.cc", "a.cc"), ("tools/b.cc", "b.cc"), ("tests/test.cc", "test.cc"))}
    monkeypatch.setattr(lint, "_touched", lambda: {"tools/b.cc", "tests/test.cc"})
    monkeypatch.setattr(lint, "full", False)
    assert [result.name for result in lint._alone("lint", commands)] == ["lint/compile alone tools/b.cc"]
    monkeypatch.setattr(lint, "full", True)
    good, bad = lint._alone("lint", commands)
    assert (good.name, good.outcome) == ("lint/compile alone tools/a.cc", "passed")
    assert (bad.name, bad.outcome) == ("lint/compile alone tools/b.cc", "failed")
    assert "std" in bad.detail
