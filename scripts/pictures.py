#!/usr/bin/python3
"""Draws the pictures of the documents: writes NAME.svg for each docs/**/NAME.picture.

A picture is boxes in a grid, and arrows between boxes of one row or of one column:

  box NAME COLUMN ROW SPAN: TITLE | LINE | ...     SPAN is the number of columns
  arrow FROM TO: LABEL                             the label may be empty

The colors follow the light or dark scheme of the reader's system.

examples:
  scripts/pictures.py            # after a change of a .picture file; commit both files

exit status: 0 written, 1 a picture has an error, 2 wrong usage.
"""

import argparse
import pathlib
import re
import sys
import typing
import xml.sax.saxutils

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
# Sizes in pixels.
WIDTH, GAP = 208, 92  # Width of a column; space between columns.
LINE, PADDING, ROW_GAP = 19, 12, 40
MARGIN = 8
CHARACTER = 8.6  # Mean width of a character in a wide font.

STYLE = """\
text { font: 14px system-ui, "Noto Sans", "DejaVu Sans", sans-serif; text-anchor: middle; fill: #1b1f24; }
.title { font-weight: bold; }
.label { font-size: 13px; fill: #57606a; }
rect { fill: #f4f6f8; stroke: #8b949e; }
.arrow { stroke: #57606a; stroke-width: 1.5; }
.head { fill: #57606a; }
@media (prefers-color-scheme: dark) {
  text { fill: #dfe4ea; }
  .label { fill: #9aa5b1; }
  rect { fill: #1e242b; stroke: #6b7683; }
  .arrow { stroke: #9aa5b1; }
  .head { fill: #9aa5b1; }
}
"""


class PictureError(Exception):
    """A line of a picture is wrong; the message quotes it."""


class Box(typing.NamedTuple):
    left: int
    top: int
    width: int
    height: int
    lines: list

    @property
    def center(self):
        return self.left + self.width // 2


def draw(text):
    """Returns the SVG of a picture."""
    boxes, shapes = read_boxes(text), []
    for box in boxes.values():
        shapes += draw_box(box)
    for line in lines_of(text, "arrow"):
        found = re.fullmatch(r"arrow (\w+) (\w+):(.*)", line)
        if not found or found[1] not in boxes or found[2] not in boxes:
            raise PictureError(line)
        shapes += draw_arrow(boxes[found[1]], boxes[found[2]], found[3].strip(), line)
    width = max(box.left + box.width for box in boxes.values()) + MARGIN
    height = max(box.top + box.height for box in boxes.values()) + MARGIN
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                      f'height="{height}">', f"<style>\n{STYLE}</style>", *shapes, "</svg>", ""])


def lines_of(text, word):
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in lines:
        if line.split()[0] not in ("box", "arrow"):
            raise PictureError(line)
    return [line for line in lines if line.split()[0] == word]


def read_boxes(text):
    """Returns the boxes by their names. All boxes of a row have the height of the largest."""
    found = {}
    for line in lines_of(text, "box"):
        match = re.fullmatch(r"box (\w+) (\d+) (\d+) (\d+): (.+)", line)
        if not match or match[1] in found or match[4] == "0":
            raise PictureError(line)
        column, row, span = map(int, match.group(2, 3, 4))
        lines = [part.strip() for part in match[5].split("|")]
        if max(map(len, lines)) * CHARACTER > width_of(span):
            raise PictureError(f"{line} (the text is wider than the box)")
        found[match[1]] = column, row, span, lines
    if not found:
        raise PictureError("a picture has no box")
    tops, top = {}, MARGIN
    for row in range(max(row for _, row, _, _ in found.values()) + 1):
        height = 2 * PADDING + LINE * max([len(lines) for _, of, _, lines in found.values() if of == row], default=0)
        tops[row] = top, height
        top += height + ROW_GAP
    return {name: Box(MARGIN + column * (WIDTH + GAP), tops[row][0], width_of(span), tops[row][1], lines)
            for name, (column, row, span, lines) in found.items()}


def width_of(span):
    return span * (WIDTH + GAP) - GAP


def draw_box(box):
    shapes = [f'<rect x="{box.left}" y="{box.top}" width="{box.width}" height="{box.height}" rx="6"/>']
    first = box.top + (box.height - LINE * len(box.lines)) // 2 + 14
    return shapes + [draw_text(box.center, first + i * LINE, line, "line" if i else "title")
                     for i, line in enumerate(box.lines)]


def draw_text(x, y, text, kind):
    return f'<text x="{x}" y="{y}" class="{kind}">{xml.sax.saxutils.escape(text)}</text>'


def draw_arrow(source, target, label, line):
    """Returns the shapes of an arrow. Arrows to the right are in the upper half of a box, arrows to the left in the lower."""
    if source.top == target.top and source.left != target.left:
        right = source.left < target.left
        y = source.top + source.height * (1 if right else 2) // 3
        begin, end = (source.left + source.width, target.left) if right else (source.left, target.left + target.width)
        back = end - (9 if right else -9)
        return [f'<line x1="{begin}" y1="{y}" x2="{back}" y2="{y}" class="arrow"/>',
                f'<polygon points="{end},{y} {back},{y - 5} {back},{y + 5}" class="head"/>',
                *([draw_text((begin + end) // 2, y - 7, label, "label")] if label else [])]
    x = min(source, target, key=lambda box: box.width).center
    if source.top == target.top or not all(box.left < x < box.left + box.width for box in (source, target)):
        raise PictureError(line)
    down = source.top < target.top
    begin, end = (source.top + source.height, target.top) if down else (source.top, target.top + target.height)
    back = end - (9 if down else -9)
    return [f'<line x1="{x}" y1="{begin}" x2="{x}" y2="{back}" class="arrow"/>',
            f'<polygon points="{x},{end} {x - 5},{back} {x + 5},{back}" class="head"/>',
            *([draw_text(x + 40, (begin + end) // 2 + 4, label, "label")] if label else [])]


def main():
    parser = argparse.ArgumentParser(
        prog="pictures.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    for picture in sorted((REPOSITORY / "docs").rglob("*.picture")):
        try:
            svg = draw(picture.read_text(encoding="utf-8"))
        except PictureError as error:
            print(f"{picture.relative_to(REPOSITORY)}: invalid line: {error}", file=sys.stderr)
            return 1
        picture.with_suffix(".svg").write_text(svg, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
