"""Finds the blocks of code in the documents and the examples of manual pages and of --help, and defines how each is
tested.

By default, the language of a block determines how it is tested (an indented block is `sh`):

  c, cpp    it is compiled, linked and run; without main(), only compiled
  sh        it is run, with the document's other blocks in order, in one shell (document_shell.py); ./run lines are only
            compared with the commands that the scripts know
  console   as sh, and the output is compared: after "$ " a command, then its output
  toml      nettraced --check-config accepts it
  ini       systemd accepts it as a unit, or as a drop-in of one
  json      it is valid JSON
  grammar   every name that it uses is defined

A comment on the line before it, or on the one before an empty line, changes this: <!-- test: WORDS -->, with commas
between the words:

  here, vm, systemd   a shell runs it on this kernel, in the VM, or in a VM with systemd; default: see PLACES. With several
                      of these words, it runs in each of the places
  exit N              one of its commands may end with this status
  within FILE         it is compiled in this file of frames/, in place of the line "// The block."
  std STANDARD        it is compiled with this standard instead of C++20 or C11
  as FILE             the document's shells find it as this file
  by FILE             this test reads it with taken_by()
  in FILE             each of its lines is in this file
  none: REASON        it is not tested; the reason ends with the comment

A block of another language needs one of the last three. An example of a manual page or of --help is a line, and is
`sh`. A line of --help that ends with a backslash continues on the next one.
"""

import dataclasses
import pathlib
import re
import subprocess
import sys

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "tests/README.md", "docs/**/*.md")
PAGES = "docs/man/*"
LANGUAGES = {"c": "compile", "cpp": "compile", "sh": "run", "console": "run", "toml": "settings", "ini": "unit", "json": "json",
             "grammar": "grammar"}
WORDS = ("within", "std", "as", "by", "in", "exit")
# The default place of a block: the first place whose pattern one of its commands matches.
PLACES = {
    "systemd": r"\b(systemctl|journalctl|systemd-\w+|eventheader doctor)\b",
    "vm": r"\b(nettrace record|nettrace ctl|nettrace top .*(-e|--session)|eventheader (register|unregister|list|watch|catalog))\b|^ *nettraced\b",
    "here": "",
}
# Accepted exit statuses of commands, besides 0. With 6, doctor has found a problem.
EXITS = {"eventheader doctor": "6"}


class MarkerError(Exception):
    """A comment about a block's test that cannot be parsed."""


@dataclasses.dataclass(frozen=True)
class Block:
    document: str  # Path in the tree, or the command whose --help has the block.
    line: int  # Number of its first line.
    language: str
    text: str
    marker: dict

    @property
    def name(self):
        return f"{self.document}:{self.line}"

    @property
    def way(self):
        """Returns how the block is tested; None if there is no known way."""
        for word in ("none", "by", "in"):
            if word in self.marker:
                return word
        lines = [line for line in self.text.splitlines() if line]
        if self.language == "sh" and all(line.startswith("./run ") for line in lines):
            return "checkout"
        return LANGUAGES.get(self.language)

    @property
    def places(self):
        if "places" in self.marker:
            return self.marker["places"]
        return next([place] for place, commands in PLACES.items() if re.search(commands, self.text, re.MULTILINE))

    @property
    def exits(self):
        """Returns the exit statuses besides 0 that are accepted."""
        return " ".join([self.marker.get("exit", ""), *(status for command, status in EXITS.items() if command in self.text)])

    def commands(self):
        """Returns the commands of a console block, each with its output; for another block, only its whole text."""
        if self.language != "console":
            return [(self.text, None)]
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [tuple(part.split("\n", 1)) for part in parts]


def parse_marker(text):
    """Parses "vm, exit 6" to {"place": "vm", "exit": "6"}."""
    marker = {}
    if text.startswith("none:"):
        marker["none"] = text.removeprefix("none:").strip()
        if not marker["none"]:
            raise MarkerError("the reason why the block is not tested is missing after 'none:'")
        return marker
    for part in text.split(","):
        word, _, value = part.strip().partition(" ")
        if word in PLACES and not value:
            marker.setdefault("places", []).append(word)
        elif word in WORDS and value:
            marker[word] = value
        else:
            raise MarkerError(f"{part.strip()!r} is not a way to test a block; use the words in tests/support/documents.py")
    return marker


def of_markdown(document, text):
    """Returns the blocks of a document, both fenced and indented."""
    result, lines = [], text.splitlines()
    marker, in_list, number = None, False, 0
    while number < len(lines):
        line = lines[number]
        number += 1
        said = re.fullmatch(r"<!-- test: (.*) -->", line)
        fence = re.fullmatch(r"( *)(```+)(.*)", line)
        if said:
            marker = parse_marker(said[1])
            continue
        if fence:
            end = lines.index(fence[1] + fence[2], number)
            language, content = fence[3].strip(), lines[number:end]
        elif line.startswith("    ") and not in_list and (number == 1 or not lines[number - 2].strip()):
            end = number
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            language, content = "sh", [line[4:] for line in lines[number - 1:end]]
            number -= 1
        else:
            if line.strip():
                in_list = bool(re.match(r"[-*] |\d+\. ", line)) or in_list and line.startswith(" ")
                if marker is not None:
                    raise MarkerError(f"{document}:{number}: no block follows the comment")
            continue
        result.append(Block(document, number + 1, language, "\n".join(content).rstrip("\n") + "\n", marker or {}))
        marker, number = None, end + (1 if fence else 0)
    return result


def of_page(document, text):
    """Returns the command lines and files in the examples of a manual page."""
    result, content, in_examples = [], None, False
    for number, line in enumerate(text.splitlines(), 1):
        line = line.replace(r"\(dq", '"').replace(r"\e", "\\").replace(r"\&", "")
        if line.startswith(".Sh "):
            in_examples = line == ".Sh EXAMPLES"
        elif in_examples and line.startswith(".Dl "):
            result.append(Block(document, number, "sh", line[4:] + "\n", {}))
        elif in_examples and line.startswith(".Bd "):
            content = []
        elif content is not None and line == ".Ed":
            start = number - len(content)
            if content[0].startswith("["):
                result.append(Block(document, start, "toml", "\n".join(content) + "\n", {}))
            else:
                result += [Block(document, start + i, "sh", command + "\n", {}) for i, command in enumerate(content)]
            content = None
        elif content is not None:
            content.append(line)
    return result


def of_help(program):
    """Returns the examples in the --help of a program and of each of its commands."""
    result, waiting = [], [()]
    while waiting:
        words = waiting.pop(0)
        shown = subprocess.run([program, *words, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        name = " ".join([program.name, *words, "--help"])
        _, _, examples = shown.partition("\nExamples:\n" if "\nExamples:\n" in shown else "\nExample:\n")
        examples = re.sub(r"\s*\\\n\s*", " ", examples.rstrip())
        result += [Block(name, number, "sh", line.strip() + "\n", {}) for number, line in enumerate(examples.splitlines(), 1)]
        _, _, commands = shown.partition("\nSubcommands:\n")
        waiting += [(*words, command) for command in re.findall(r"^  (\w+)", commands.partition("\n\n")[0], flags=re.MULTILINE)]
    return result


def of_tree(source):
    """Returns the blocks of all documents, by their paths."""
    paths = sorted({path for pattern in DOCUMENTS for path in source.glob(pattern)})
    names = [str(path.relative_to(source)) for path in paths]
    return {name: of_markdown(name, path.read_text(encoding="utf-8")) for name, path in zip(names, paths)}


def of_pages(source):
    """Returns the examples of all manual pages, by their paths."""
    names = sorted(str(path.relative_to(source)) for path in source.glob(PAGES))
    return {name: of_page(name, (source / name).read_text(encoding="utf-8")) for name in names}


def taken_by(test, source):
    """Returns the blocks whose marker has "by" and the name of this test."""
    name = pathlib.Path(test).name
    return [block for blocks in of_tree(source).values() for block in blocks if block.marker.get("by") == name]


def main():
    """Prints the block that a document's shells find as FILE: documents.py SOURCE DOCUMENT FILE."""
    source, document, file = sys.argv[1:]
    [block] = [block for block in of_tree(pathlib.Path(source))[document] if block.marker.get("as") == file]
    print(block.text, end="")


if __name__ == "__main__":
    main()
