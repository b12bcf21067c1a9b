#!/usr/bin/python3
"""Tests that every file and folder that a document names exists, and that the target of every relative link exists."""

import fnmatch
import os
import pathlib
import re
import unittest

from support import script

SOURCE = script.options(__doc__, "source").source

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/**/*.md"]
# A path may be relative to the tree's root, to an include root, or to the document.
INCLUDE_ROOT = "include"
SUFFIXES = {".h", ".cc", ".c", ".py", ".sh", ".md", ".build", ".map", ".supp"}
# Folders that builds make. Documents may name paths in them, although they are not in the tree.
MADE = ("build/", "build-gcc/", "build-asan/", "build-tsan/")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
# A word in capitals stands for any name: `broken/RULE.txt`.
PLACEHOLDER = re.compile(r"\b(?!README|CONTRIBUTING|LICENSE)[A-Z]{3,}\b")
PATH = re.compile(r"[A-Za-z0-9_.*{},+-]+(/[A-Za-z0-9_.*{},+-]*)*")


def files_of_tree():
    """Returns every file and folder below the source tree, as relative paths, without folders that builds make."""
    paths = []
    for folder, folders, files in os.walk(SOURCE):
        folders[:] = [name for name in folders
                      if name not in (".git", "build-package", "dist") and not (pathlib.Path(folder) / name / "meson-private").exists()]
        below = os.path.relpath(folder, SOURCE)
        paths += [os.path.normpath(os.path.join(below, name)) for name in folders + files]
    return paths


def alternatives(pattern):
    """Expands 'a/{b,c}' to 'a/b' and 'a/c'."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if not braces:
        return [pattern]
    return [path for part in braces[1].split(",")
            for path in alternatives(pattern[:braces.start()] + part.strip() + pattern[braces.end():])]


def looks_like_a_path(code):
    if not PATH.fullmatch(code) or code.startswith(MADE):
        return False
    return "/" in code.rstrip("/") or code.endswith("/") or pathlib.Path(code).suffix in SUFFIXES


class Tree:
    def __init__(self):
        self._paths = set(files_of_tree())
        self._names = {os.path.basename(path) for path in self._paths}

    def has(self, path, relative_to):
        """Returns whether a path exists below a root or below the document's folder. A name without a folder may be
        anywhere in the tree."""
        path = PLACEHOLDER.sub("*", path.removeprefix("./").rstrip("/"))
        if "/" not in path:
            return any(fnmatch.filter(self._names, path))
        starts = [path, f"{INCLUDE_ROOT}/{path}", os.path.normpath(os.path.join(relative_to, path))]
        return any(start in self._paths or ("*" in start and fnmatch.filter(self._paths, start)) for start in starts)

    def missing(self, text, relative_to):
        """Returns the paths that a document names and that do not exist."""
        text = FENCE.sub("", text)
        named = [code for code in CODE.findall(text) if looks_like_a_path(code)]
        wanting = [code for code in named
                   if not all(self.has(path, relative_to) for path in alternatives(code))]
        for link in LINK.findall(CODE.sub("", text)):
            target = link.split("#")[0]
            if target and "://" not in target:
                path = os.path.normpath(os.path.join(relative_to, target))
                if path not in self._paths:
                    wanting.append(link)
        return wanting


class DocumentsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = Tree()
        root = SOURCE
        cls.documents = sorted({path for pattern in DOCUMENTS for path in root.glob(pattern)})

    def test_all_paths_in_documents_exist(self):
        self.assertGreater(len(self.documents), 5)
        for path in self.documents:
            with self.subTest(document=str(path.relative_to(SOURCE))):
                relative_to = str(path.parent.relative_to(SOURCE))
                self.assertEqual(self.tree.missing(path.read_text(encoding="utf-8"), relative_to), [])

    def test_finds_missing_paths(self):
        for text in ("`tools/none/`", "`libeventheader/base/{utf,none}.h`", "`none.cc`", "`docs/none*.md`",
                     "`docs/NAME.none`", "[a guide](guides/none.md)", "`nettrace/none.h`", "[`code`](none)"):
            with self.subTest(text=text):
                self.assertEqual(len(self.tree.missing(text, "docs")), 1)

    def test_finds_existing_paths(self):
        for text in ("`tools/collector/`", "`libeventheader/{base,decode}/*.h`", "`docs/man/NAME.1`", "`utf.h`", "`eventheader/wire.h`",
                     "`build/bin/nettrace`", "`/sys/kernel/tracing`", "`1/2 of it`", "[here](../README.md#more)",
                     "```\n`tools/none`\n```", "[there](https://example.com/none)"):
            with self.subTest(text=text):
                self.assertEqual(self.tree.missing(text, "docs"), [])


if __name__ == "__main__":
    script.run_cases()
