#!/usr/bin/python3
"""Writes an HTML page, its style and its script to one C++ header. Usage: embed_page.py PAGE.html PAGE.css PAGE.js...
OUT.h

In the page, {{style}} is replaced with the second file, and {{script}} with the others, in one function. {{style-hash}}
and {{script-hash}} are replaced with the hashes that a Content-Security-Policy names them by. Each other {{name}} is a
slot that the program fills: the header has the text between the slots."""

import base64
import hashlib
import json
import pathlib
import re
import sys

def literal(text):
    """Returns text as C++ string literals, one for each line."""
    # JSON and C++ have the same escapes, except for control characters, which pages do not contain. ?? is broken up
    # because it could begin a trigraph.
    lines = [json.dumps(line, ensure_ascii=False).replace("??", "?\\?") for line in text.splitlines(keepends=True)]
    return "".join(f"    {line}\n" for line in lines or ['""'])


def pieces(text):
    """Splits text between lines, into pieces that are not too long for a string literal (C++ promises 65536 bytes)."""
    found, size = [""], 0
    for line in text.splitlines(keepends=True):
        size += len(line.encode())
        if size > 60000:
            found.append("")
            size = len(line.encode())
        found[-1] += line
    return found


def hash_of(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def main():
    page, style, *scripts = (pathlib.Path(name).read_text(encoding="utf-8") for name in sys.argv[1:-1])
    script = '"use strict";\n(() => {\n' + "".join(scripts) + "})();\n"
    # An HTML parser would end the style or script at its end tag, and might not find the end of a script after <!--.
    if "</style" in style or "</script" in script or "<!--" in script:
        raise SystemExit("embed_page.py: the style must not contain </style, and the script neither </script nor <!--")
    known = {"style": style, "script": script, "style-hash": hash_of(style), "script-hash": hash_of(script)}
    parts = re.split(r"\{\{([a-z-]+)\}\}", page)
    texts, slots = [parts[0]], []
    for name, text in zip(parts[1::2], parts[2::2]):
        if name in known:
            texts[-1] += known[name] + text
        else:
            slots.append(name)
            texts.append(text)
    parts = []
    for text, slot in zip(texts, [*slots, ""]):
        *before, last = pieces(text)
        parts += [*((piece, "") for piece in before), (last, slot)]
    with open(sys.argv[-1], "w", encoding="utf-8") as out:
        out.write("// Made by scripts/embed_page.py.\n#pragma once\n\n#include <array>\n#include <string_view>\n\n"
                  "namespace tools::report {\n\n"
                  "// Text of the page, and the name of the slot after it; \"\" if there is none.\n"
                  "struct PagePart {\n  std::string_view text;\n  std::string_view slot;\n};\n\n"
                  f"inline constexpr std::array<PagePart, {len(parts)}> kPageParts = {{{{\n")
        for text, slot in parts:
            out.write(f'    {{\n{literal(text)}    , "{slot}"}},\n')
        out.write("}};\n\n}  // namespace tools::report\n")


if __name__ == "__main__":
    main()
