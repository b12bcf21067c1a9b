"""Tests of the pictures of the documents."""

import importlib.util
import pathlib
import re
import xml.etree.ElementTree as ET

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PICTURES = sorted((REPOSITORY / "docs").rglob("*.picture"))
BOXES = "box a 0 0 1: A <b> | line\nbox b 1 0 1: B\nbox c 0 1 2: C\n"


@pytest.fixture(name="pictures")
def fixture_pictures():
    specification = importlib.util.spec_from_file_location("pictures", REPOSITORY / "scripts/pictures.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_committed_picture_is_up_to_date(pictures, path):
    assert path.with_suffix(".svg").read_text() == pictures.draw(path.read_text())


def test_draws_boxes_and_arrows(pictures):
    svg = ET.fromstring(pictures.draw(BOXES + "# comment\narrow a b: to\narrow b a:\narrow a c:\narrow c b: up\n"))
    found = [(element.tag.removeprefix("{http://www.w3.org/2000/svg}"), element.text) for element in svg]
    assert [tag for tag, _ in found].count("rect") == 3
    assert [tag for tag, _ in found].count("line") == [tag for tag, _ in found].count("polygon") == 4
    assert [text for tag, text in found if tag == "text"] == ["A <b>", "line", "B", "C", "to", "up"]


@pytest.mark.parametrize("line", [
    "circle a", "box a 0 0 1: again", "box d 0 0: no span", "box d 0 2 0: no column", "box d 0 2 1: " + "x" * 40,
    "arrow a d:", "arrow a b", "arrow a a:", "box d 3 1 1: D\narrow a d:",
])
def test_invalid_line_is_an_error(pictures, line):
    with pytest.raises(pictures.PictureError, match=re.escape(line.split("\n")[-1])):
        pictures.draw(BOXES + line + "\n")


def test_picture_without_boxes_is_an_error(pictures):
    with pytest.raises(pictures.PictureError):
        pictures.draw("# nothing\n")
