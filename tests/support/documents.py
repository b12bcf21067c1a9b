"""The blocks of code in the documents, the examples of manual pages and of --help, and how each is tested.

What is done with a block follows from its language (an indented block is `sh`):

  c, cpp    it is compiled, linked and run; without main(), only compiled
  sh        it is run; all of a document's in order, in one shell (document_shell.py); lines that begin with ./run are only
            compared with what its scripts know
  console   likewise, and what comes out is compared: after "$ " a command, then its output
  toml      nettraced --check-config takes it
  ini       systemd takes it as a unit, or as a drop-in of one
  json      it is JSON
  grammar   what it refers to is defined

and from a comment on the line before it, or on the one before an empty line: <!-- test: WORDS -->, with commas between

  here, vm, systemd   where a shell runs it: on this kernel, in the VM, in a VM with systemd; else by its commands (PLACES)
  exit N              a command of it may end with this status
  within FILE         it is compiled within this file of frames/, in place of the line "// The block."
  std STANDARD        it is compiled as this, not as C++20 or C11
  as FILE             the document's shells find it as this file
  by FILE             this test takes it, by taken_by()
  in FILE             each of its lines is in this file
  none: REASON        nothing is done, to the comment's end

A block of another language needs one of the last three. An example of a manual page or of --help is a line, and is `sh`.
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
# Where commands are run that say no place: the first that one of them needs.
PLACES = {
    "systemd": r"\b(systemctl|journalctl|systemd-\w+|eventheader doctor)\b",
    "vm": r"\b(nettrace record|nettrace ctl|nettrace top .*(-e|--session) |eventheader (register|unregister|list|watch|catalog))\b|^ *nettraced\b",
    "here": "",
}
# What they may end with where all is as it should be: doctor has found something.
EXITS = {"eventheader doctor": "6"}


class MarkerError(Exception):
    """A comment that says how a block is tested is not understood."""


@dataclasses.dataclass(frozen=True)
class Block:
    document: str  # Relative to the tree, or the command whose --help it is.
    line: int  # Of its first line.
    language: str
    text: str
    marker: dict

    @property
    def name(self):
        return f"{self.document}:{self.line}"

    @property
    def way(self):
        """How it is tested; None if there is no known way."""
        for word in ("none", "by", "in"):
            if word in self.marker:
                return word
        lines = [line for line in self.text.splitlines() if line]
        if self.language == "sh" and all(line.startswith("./run ") for line in lines):
            return "checkout"
        return LANGUAGES.get(self.language)

    @property
    def place(self):
        for place, commands in PLACES.items():
            if self.marker.get("place", place) == place and ("place" in self.marker or re.search(commands, self.text, re.MULTILINE)):
                return place
        raise MarkerError(self.name)

    @property
    def exits(self):
        """The statuses beside 0 that its commands may end with."""
        return " ".join([self.marker.get("exit", ""), *(status for command, status in EXITS.items() if command in self.text)])

    def commands(self):
        """The commands of a console block, each with what it prints; of another one, all of it."""
        if self.language != "console":
            return [(self.text, None)]
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [tuple(part.split("\n", 1)) for part in parts]


def parse_marker(text):
    """{"place": "vm", "exit": "6"} of "vm, exit 6"."""
    marker = {}
    if text.startswith("none:"):
        marker["none"] = text.removeprefix("none:").strip()
        if not marker["none"]:
            raise MarkerError("there is no reason after none:")
        return marker
    for part in text.split(","):
        word, _, value = part.strip().partition(" ")
        if word in PLACES and not value:
            marker["place"] = word
        elif word in WORDS and value:
            marker[word] = value
        else:
            raise MarkerError(f"a test is not said by {part.strip()!r}")
    return marker


def of_markdown(document, text):
    """The blocks of a document, fenced and indented ones."""
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
                    raise MarkerError(f"{document}:{number}: after the comment there is no block")
            continue
        result.append(Block(document, number + 1, language, "\n".join(content).rstrip("\n") + "\n", marker or {}))
        marker, number = None, end + (1 if fence else 0)
    return result


def of_page(document, text):
    """The command lines and files in the examples of a manual page."""
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
    """The examples that the --help of a program and of each of its commands shows."""
    result, waiting = [], [()]
    while waiting:
        words = waiting.pop(0)
        shown = subprocess.run([program, *words, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        name = " ".join([program.name, *words, "--help"])
        _, _, examples = shown.partition("\nExamples:\n" if "\nExamples:\n" in shown else "\nExample:\n")
        result += [Block(name, number, "sh", line.strip() + "\n", {}) for number, line in enumerate(examples.rstrip().splitlines(), 1)]
        _, _, commands = shown.partition("\nSubcommands:\n")
        waiting += [(*words, command) for command in re.findall(r"^  (\w+)", commands.partition("\n\n")[0], flags=re.MULTILINE)]
    return result


def of_tree(source):
    """The blocks of all documents, by their paths."""
    paths = sorted({path for pattern in DOCUMENTS for path in source.glob(pattern)})
    names = [str(path.relative_to(source)) for path in paths]
    return {name: of_markdown(name, path.read_text(encoding="utf-8")) for name, path in zip(names, paths)}


def of_pages(source):
    """The examples of all manual pages, by their paths."""
    names = sorted(str(path.relative_to(source)) for path in source.glob(PAGES))
    return {name: of_page(name, (source / name).read_text(encoding="utf-8")) for name in names}


def taken_by(test, source):
    """The blocks that say "by" and the name of this test."""
    name = pathlib.Path(test).name
    return [block for blocks in of_tree(source).values() for block in blocks if block.marker.get("by") == name]


def main():
    """Prints the block that a document's shells find as FILE: documents.py SOURCE DOCUMENT FILE."""
    source, document, file = sys.argv[1:]
    [block] = [block for block in of_tree(pathlib.Path(source))[document] if block.marker.get("as") == file]
    print(block.text, end="")


if __name__ == "__main__":
    main()
