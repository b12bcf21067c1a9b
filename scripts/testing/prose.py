#!/usr/bin/python3
"""Finds words and phrases that CONTRIBUTING.md rejects in the text that people read: comments and docstrings, Markdown
documents, manual pages, and the strings of product code.

Prints FILE:LINE: "WORD": HINT for each match. scripts/testing/prose_allowed.txt names the lines where a word is right.

examples:
  scripts/testing/prose.py                 # all files, as ./run test lint does
  scripts/testing/prose.py tools docs/man  # these files and folders
  scripts/testing/prose.py --count         # the number of matches of each folder

exit status: 0 no match, 1 a match or an entry of the allow list that matches nothing, 2 wrong usage.
"""

import argparse
import bisect
import collections
import io
import pathlib
import re
import subprocess
import sys
import tokenize
import typing

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
ALLOWED = "scripts/testing/prose_allowed.txt"

# Product code, whose string literals are checked.
PRODUCT = ("include/", "libeventheader/", "libnettrace-writer/", "tools/")

COMMENT, DOCUMENT, MANUAL, STRING = "comment", "document", "manual page", "string"
# Replaces each character of code within text. It is a letter, so that the code counts as a word.
CODE = "\N{MODIFIER LETTER SMALL X}"


class Rule(typing.NamedTuple):
    pattern: re.Pattern
    hint: str
    kinds: tuple = (COMMENT, DOCUMENT, MANUAL, STRING)


class Text(typing.NamedTuple):
    """A comment, paragraph, table cell or string literal."""
    kind: str
    content: str
    starts: list  # Offsets in `content` at which a line of the file begins.
    lines: list  # The number of each line in `starts`.


class Match(typing.NamedTuple):
    path: str
    line: int
    word: str
    hint: str
    text: str  # The line without the spaces around it.

    def __str__(self):
        return f'{self.path}:{self.line}: "{self.word}": {self.hint}'


def _rule(pattern, hint, **options):
    return Rule(re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), hint, **options)


# Matches after a pronoun, but not before a noun: "such" is a determiner in "such events".
_NO_NOUN = (r"(?=\s*(?:[.,;:!?)]|$)| (?:is|are|was|were|has|have|had|may|can|must|will|do|does|of|in|on|at|to|for|by|"
            r"with|from|into|and|or|but|which|who|it|they|if|when|while)\b)")
_NAMED = "name what acts: the caller, the user, a process, another thread, the kernel"
_REPEAT = "repeat the noun, or begin a new sentence"

RULES = (
    _rule(r"\b(?:told|tells?)\b", "say what is reported, logged, recorded, returned or shown"),
    _rule(r"\b(?:nobody|somebody|anybody|whoever)\b", _NAMED),
    _rule(r"\b(?:is|are) to be\b", 'use "must be", "is" or an imperative'),
    _rule(r"\bof (?:its|their) own\b", 'use "its own", "separate" or "another"'),
    _rule(r"(?<!as\s)\bsuch\b" + _NO_NOUN, "name what is meant"),
    _rule(r"\bso (?:many|much)\b(?! (?:\w+ )?that\b)", "state the number or amount"),
    _rule(r"\bso long\b(?! as\b| that\b|-)", "state the time or condition"),
    _rule(r"\banew\b", 'use "again" or "a new"'),
    _rule(r"\bby and by\b", 'use "gradually" or "over time"'),
    _rule(r"\blikewise\b", 'use "also", or repeat the verb'),
    _rule(r"\bmeanwhile\b", "say during which time"),
    # Phrases that other rules of CONTRIBUTING.md reject.
    _rule(r"(?<!each\s)(?<!one\s)(?<!all\s)(?<!both\s)(?<!none\s)(?<!most\s)\bof which\b", _REPEAT),
    _rule(r"\bof those\b" + _NO_NOUN, _REPEAT),
    _rule(r"\bof those that\b", _REPEAT),
    _rule(r"\bof whose\b", _REPEAT),
    _rule(r"\bof more\b(?! than\b)", _REPEAT),
    _rule(r"\bone then\b", _REPEAT),
    _rule(r"\bso it is\b(?=\s*(?:[.,;:)]|$)| (?:with|without|in|on|for|if|when|where|also|too)\b)", _REPEAT),
    _rule(r"\b(?:hears?|says?) of\b", "use report, record, describe or notify"),
    _rule(r"\bha(?:s|ve) to do with\b", "name the relation: uses, reads, depends on"),
    _rule(r"\bcomes? and goe?s?\b", "say that it is created and deleted, or starts and ends"),
    _rule(r"\belse than\b", 'use "other than", or say what is accepted'),
    _rule(r"\b(?:and|or|says?|shows?|knows?) who\b", _NAMED),
    _rule(r": (?:is|are) (?:no|not|named)\b", "give the verb a subject: invalid X; use Y"),
    _rule(r"\bare some\b(?=\s*(?:[.,;)]|$))", 'use "examples: ..."'),
    # Beginnings of sentences that are no questions.
    Rule(re.compile(r"(?:^|(?<=[.;:!?]\s))Who\b(?![^.?!]*\?)"), _NAMED),
    Rule(re.compile(r"(?:^|(?<=[.;:!?]\s))Not\s+\w+ed\s+(?:is|are)\b"), "put the subject before the verb"),
    Rule(re.compile(r"^(?:Of|As|What|Those|These|Its|Their|So|Such|Whose|Who|Has|Is|The\s+same)\b(?![-_.:(/])"),
         "begin a comment with a verb (Returns), an article or the name of the thing", kinds=(COMMENT,)),
)


# The texts of a file.

class _Builder:
    """Collects the texts of a file line by line."""

    def __init__(self):
        self.texts = []
        self._kind, self._parts = None, []  # The open text: (line, content) of each line.

    def begin(self, kind):
        self.end()
        self._kind = kind

    def add(self, line, content, end="\n"):
        self._parts.append((line, content + end))

    def end(self):
        content, starts, lines = "", [], []
        for line, part in self._parts:
            starts.append(len(content))
            lines.append(line)
            content += part
        if content.strip():
            stripped = content.rstrip()
            skipped = len(stripped) - len(stripped.lstrip())
            starts = [max(0, start - skipped) for start in starts]
            self.texts.append(Text(self._kind, stripped[skipped:], starts, lines))
        self._kind, self._parts = None, []


def _masked(text):
    """Replaces each character of inline code and of the addresses of links by a letter, which keeps all offsets."""
    text = re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", _mask, text, flags=re.DOTALL)
    return re.sub(r"(?<=\])\([^)\s]*\)", _mask, text)


def _mask(match):
    return re.sub(r"[^\n]", CODE, match[0])


_C_TOKEN = re.compile(r"""
    (?P<line>//(?:\\\n|[^\n])*)
  | (?P<block>/\*.*?\*/)
  | (?P<raw>\b(?:u8|[uUL])?R"(?P<delimiter>[^()\s\\]{0,16})\((?P<rawtext>.*?)\)(?P=delimiter)")
  | (?:\b(?:u8|[uUL]))?"(?P<string>(?:\\.|[^"\\\n])*)"
  | (?P<number>\b\d(?:'?[\w.])*)
  | '(?:\\.|[^'\\\n])+'
  | (?P<space>(?:\s|\\\n)+)
  | (?P<include>^[ \t]*\#[ \t]*include\b[^\n]*)
  | (?P<word>\w+)
  | (?P<other>.)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)


def _c_texts(source, strings):
    """Returns the comments of C or C++ code and, if `strings` is set, the string literals that contain a space."""
    comments, blocks, literals = [], _Builder(), _Builder()
    newlines = [i for i, char in enumerate(source) if char == "\n"]
    open_literal = False  # Adjacent string literals are one text.
    for token in _C_TOKEN.finditer(source):
        before = bisect.bisect_left(newlines, token.start())
        line, begin = before + 1, newlines[before - 1] + 1 if before else 0
        if token["line"] is not None:
            alone = not source[begin:token.start()].strip()
            comments += [(line + i, token.start() - begin, alone or i > 0, re.sub(r"^\s*//[/!]?<?", "", part))
                         for i, part in enumerate(token["line"].split("\n"))]
        elif token["block"] is not None:
            blocks.begin(COMMENT)
            for i, part in enumerate(token["block"][2:-2].split("\n")):
                blocks.add(line + i, re.sub(r"^\s*[*!]*<?(?=\s|$)", "", part).strip())
        elif token["string"] is not None or token["raw"] is not None:
            if not open_literal:
                literals.begin(STRING)
            open_literal = True
            raw = token["raw"] is not None
            parts = (token["rawtext"] if raw else re.sub(r"\\[nt]", "\n", token["string"])).split("\n")
            for i, part in enumerate(parts):
                end = "\n" if i + 1 < len(parts) else ""
                literals.add(line + i if raw else line, part.replace('\\"', '"'), end)
        elif token["space"] is None:
            open_literal = False
    blocks.end()
    literals.end()
    shown = [text for text in literals.texts if strings and re.search(r"\S\s+\S", text.content)]
    return _comments_by_line(comments) + blocks.texts + shown


def _comments_by_line(comments):
    """Returns the texts of comments that end with their line, from (line, column, whether no code precedes it, content)
    of each line. Adjacent lines are one text. A comment after code begins a new text, which the lines below it continue
    if they begin in the same column."""
    builder = _Builder()
    last_line, last_column, last_alone = -1, -1, False
    for line, column, alone, content in comments:
        if not (line == last_line + 1 and alone and (last_alone or column == last_column)):
            builder.begin(COMMENT)
            last_alone = alone
        last_line, last_column = line, column
        builder.add(line, content.strip())
    builder.end()
    return builder.texts


def _python_texts(source):
    """Returns the comments, and the strings that are statements, such as docstrings."""
    comments, docstrings = [], _Builder()
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    before = None  # The last token whose type is not in `skipped`.
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for i, token in enumerate(tokens):
        if token.type == tokenize.COMMENT:
            comments.append((*token.start, not token.line[:token.start[1]].strip(), token.string.lstrip("#!")))
        if (token.type == tokenize.STRING and (before is None or before.type == tokenize.NEWLINE) and
                tokens[i + 1].type in (tokenize.NEWLINE, tokenize.COMMENT)):
            docstrings.begin(COMMENT)
            content = re.sub(r"^\w*('''|\"\"\"|'|\")|('''|\"\"\"|'|\")$", "", token.string)
            for number, part in enumerate(content.split("\n"), token.start[0]):
                if number > token.start[0] and not part.strip():
                    docstrings.begin(DOCUMENT)
                docstrings.add(number, part.strip())
        if token.type not in skipped:
            before = token
    docstrings.end()
    return _comments_by_line(comments) + docstrings.texts


_SHELL_TOKEN = re.compile(r"""
    (?P<heredoc><<-?[ \t]*(?P<quote>["']?)(?P<word>\w+)(?P=quote))
  | \\. | \$?'(?:[^'])*' | "(?:\\.|[^"\\])*"
  | (?P<comment>(?:(?<=\s)|(?<=;)|^)\#[^\n]*)
  | (?P<newline>\n) | .
""", re.VERBOSE | re.DOTALL | re.MULTILINE)
_MESON_TOKEN = re.compile(r"""
    '''.*?''' | '(?:\\.|[^'\\\n])*' | (?P<comment>\#[^\n]*) | .
""", re.VERBOSE | re.DOTALL)


def _script_texts(source, grammar):
    """Returns the comments of a shell script, without its here-documents, or of a file of Meson."""
    comments, position, pending = [], 0, []
    while position < len(source):
        token = grammar.match(source, position)
        position = token.end()
        named = token.groupdict()
        if named.get("heredoc") and source[token.start() - 1] != "<":
            pending.append(named["word"])
        elif named.get("newline"):
            for word in pending:
                end = re.compile(rf"^\t*{re.escape(word)}$", re.MULTILINE).search(source, position)
                position = end.end() if end else position
            pending = []
        elif named["comment"]:
            begin = source.rfind("\n", 0, token.start()) + 1
            comments.append((source.count("\n", 0, begin) + 1, token.start() - begin,
                             not source[begin:token.start()].strip(), named["comment"].lstrip("#!")))
    return _comments_by_line(comments)


def _markdown_texts(source):
    """Returns paragraphs, headings, entries of lists and cells of tables, without code."""
    builder = _Builder()
    fence, blank = None, True
    builder.begin(DOCUMENT)
    for line, content in enumerate(source.split("\n"), 1):
        stripped = content.strip()
        mark = re.match(r"\s*(```+|~~~+)", content)
        if fence:
            fence = None if mark and mark[1].startswith(fence) and stripped == mark[1] else fence
            continue
        if mark:
            fence = mark[1]
            builder.begin(DOCUMENT)
        elif content.startswith("    ") and blank:
            continue  # Indented code, and blank lines within it.
        elif not stripped:
            builder.begin(DOCUMENT)
        elif stripped.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", _masked(stripped)):
                builder.begin(DOCUMENT)
                builder.add(line, cell)
            builder.begin(DOCUMENT)
        else:
            entry = re.match(r"\s*(?:[-*+]|\d+\.|#+)\s+", content)
            if entry:
                builder.begin(DOCUMENT)
            builder.add(line, stripped[len(entry[0].strip()):] if entry else stripped)
            if content.startswith("#"):
                builder.begin(DOCUMENT)
        blank = not stripped or (blank and content.startswith("    "))
    builder.end()
    return builder.texts


# Macros of mdoc whose arguments are code or names.
_MDOC_CODE = set("Ar Cm Dv Er Ev Fa Fd Fl Fn Ft Ic In Li Nm Pa Ql Va Vt Xr".split())
_MDOC_TEXT = set("Aq Brq Do Dq Em Lk Nd No Ns Oo Op Po Pq Qq Sh Sq Ss Sy Ta".split())
_MDOC_INLINE = _MDOC_CODE | _MDOC_TEXT | {"Dc", "Pc", "Oc", "Xo", "Xc", "Ap"}


def _mdoc_arguments(arguments):
    """Returns the text of a macro line, with CODE in place of each word that is code."""
    words, code = [], False
    for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', arguments):
        if bare in _MDOC_INLINE:
            code = bare in _MDOC_CODE
        elif re.fullmatch(r"[.,;:()?!]", bare):
            words.append(bare)
        else:
            words.append(CODE if code else quoted or bare)
    return " ".join(words)


def _manual_texts(source):
    """Returns paragraphs, headings and entries of lists, without literal displays and names."""
    builder = _Builder()
    builder.begin(MANUAL)
    literal = False
    for line, content in enumerate(source.split("\n"), 1):
        macro = re.match(r"[.'][ \t]*(\S*)[ \t]*(.*)", content)
        if literal:
            literal = not (macro and macro[1] == "Ed")
        elif not macro:
            builder.add(line, re.sub(r"\\f[A-Z]|\\&", "", content))
        elif macro[1].startswith('\\"') or macro[1] in ("Dd", "Dt", "Os"):
            continue
        elif macro[1] == "Bd" and re.search(r"-(?:literal|unfilled)", macro[2]):
            literal = True
            builder.begin(MANUAL)
        elif macro[1] in ("Dl", "D1"):
            builder.begin(MANUAL)
        elif macro[1] in _MDOC_INLINE and macro[1] not in ("Sh", "Ss", "Nd"):
            builder.add(line, _mdoc_arguments(macro[1] + " " + macro[2]))
        else:
            builder.begin(MANUAL)
            builder.add(line, _mdoc_arguments(macro[2]))
            builder.begin(MANUAL)
    builder.end()
    return builder.texts


def texts_of(path, source):
    """Returns the texts of a file of this path and content; None if it is none of the kinds that are checked."""
    name = pathlib.PurePosixPath(path)
    first = source.split("\n", 1)[0]
    if name.suffix in (".cc", ".h", ".c"):
        return _c_texts(source, path.startswith(PRODUCT))
    if name.suffix == ".py" or re.match(r"#!.*\bpython3?$", first):
        return _python_texts(source)
    if name.suffix == ".sh" or re.match(r"#!.*\b(?:ba)?sh\b", first):
        return _script_texts(source, _SHELL_TOKEN)
    if name.name in ("meson.build", "meson_options.txt"):
        return _script_texts(source, _MESON_TOKEN)
    if name.suffix == ".md":
        return _markdown_texts(source)
    if path.startswith("docs/man/") and re.fullmatch(r"\.[1-9]", name.suffix):
        return _manual_texts(source)
    return None


# Matches and the allow list.

def matches_of(path, source):
    """Returns the matches in a file of this path and content, in order; None if such a file is not checked."""
    texts = texts_of(path, source)
    if texts is None:
        return None
    lines, found = source.split("\n"), {}
    for number, text in enumerate(texts):
        content = _masked(text.content) if text.kind in (COMMENT, DOCUMENT) else text.content
        for rule in RULES:
            for match in rule.pattern.finditer(content) if text.kind in rule.kinds else ():
                line = text.lines[bisect.bisect_right(text.starts, match.start()) - 1]
                match_here = Match(path, line, " ".join(match[0].split()), rule.hint, lines[line - 1].strip())
                found.setdefault((number, match.start()), match_here)
    return sorted(found.values(), key=lambda match: (match.line, match.word))


class Allowed(typing.NamedTuple):
    """An entry of the allow list."""
    path: str
    text: str
    line: int  # Line of the allow list at which the entry begins.


def read_allowed(source):
    """Returns the entries of an allow list. Raises ValueError for an entry of another form; the message
    has the entry's line."""
    entries = []
    for paragraph in re.finditer(r"(?:^[^\n]+\n?)+", source, re.MULTILINE):
        line = source.count("\n", 0, paragraph.start()) + 1
        rows = [row for row in paragraph[0].splitlines() if not row.startswith("#")]
        found = re.fullmatch(r"file: (\S+)\nline: (\S.*)\nwhy: \S.*", "\n".join(rows))
        if found:
            entries.append(Allowed(found[1], found[2].strip(), line))
        elif rows:
            raise ValueError(f"{ALLOWED}:{line}: an entry has three lines: file: PATH, line: TEXT, why: REASON")
    return entries


class Report(typing.NamedTuple):
    matches: dict  # The matches that are not allowed, by the path of each file that was read.
    errors: list  # Faults of the allow list.


def check(paths, allowed, root=REPOSITORY):
    """Checks these files, and ignores files of kinds that are not checked; `allowed` is the text of the allow list."""
    try:
        entries, errors = read_allowed(allowed), []
    except ValueError as error:
        entries, errors = [], [str(error)]
    allowed_lines = {(entry.path, entry.text) for entry in entries}
    used, matches = set(), {}
    for path in paths:
        found = matches_of(path, (root / path).read_text(encoding="utf-8", errors="replace"))
        if found is not None:
            used |= {(path, match.text) for match in found} & allowed_lines
            matches[path] = [match for match in found if (path, match.text) not in allowed_lines]
    errors += [f"{ALLOWED}:{entry.line}: no match is in a line of {entry.path} that reads: {entry.text}"
               for entry in entries if (entry.path, entry.text) not in used]
    return Report(matches, errors)


def check_tree():
    """Checks all files of the tree."""
    return check(_tracked(), (REPOSITORY / ALLOWED).read_text(encoding="utf-8"))


def below(path, folders):
    """Returns whether a file is one of these files, or below one of these folders."""
    return any(folder == "." or path == folder or path.startswith(folder + "/") for folder in folders)


def _tracked():
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in set(listed.split("\0")) if name and (REPOSITORY / name).is_file())


def _print_counts(matches):
    counts = collections.Counter()
    for path, found in matches.items():
        counts[str(pathlib.PurePosixPath(path).parent)] += len(found)
    for folder, count in sorted(counts.items()):
        print(f"{count:6} {folder}")
    print(f"{sum(counts.values()):6} in all")


def main():
    parser = argparse.ArgumentParser(
        prog="prose.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true", help="print the number of matches of each folder")
    parser.add_argument("paths", nargs="*", metavar="PATH",
                        help="a file or folder, relative to the repository (default: all)")
    args = parser.parse_args()
    report = check_tree()
    if args.count:
        _print_counts(report.matches)
        return 0
    chosen = [path.rstrip("/") for path in args.paths] or ["."]
    found = [match for path, matches in report.matches.items() if below(path, chosen) for match in matches]
    for line in found + report.errors:
        print(line)
    return 1 if found or report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
