#!/usr/bin/python3
"""Tests the documentation site that scripts/docs.py makes: every page is there and complete, and the target of every
link exists."""

import hashlib
import html.parser
import importlib.util
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

from support import script

SOURCE = script.options(__doc__, "source").source
DOCS = SOURCE / "scripts/docs.py"
NEEDED = ("cmark-gfm", "mandoc")

# Elements without an end tag.
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}
# Attributes for which a browser fetches a file; links in the text are followed only when the user clicks them.
FETCHED = {"src", "srcset", "poster", "data", "background"}


class Page(html.parser.HTMLParser):
    """The contents of a page: ids, links, elements; `wrong` has a message for each error in the HTML."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.fetched, self.wrong = [], [], [], []
        self.elements, self.title, self.description, self.current = [], "", "", 0
        self.sections = {True: 0, False: 0}  # number of open and closed sections of the navigation
        self._open = []
        self.feed(text)
        self.close()
        if self._open:
            self.wrong.append(f"elements without an end tag: {self._open}")

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append(tag)
        if len(attributes) != len(attrs):
            self.wrong.append(f"<{tag}> has an attribute twice")
        if tag not in VOID:
            self._open.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag == "link":
            self.fetched.append(attributes.get("href", ""))
        if tag == "meta" and attributes.get("name") == "description":
            self.description = attributes["content"]
        self.current += "aria-current" in attributes
        if tag == "details":
            self.sections["open" in attributes] += 1
        self.fetched += [value for name, value in attrs if name in FETCHED]
        self.wrong += [f"<{tag}>: {name} is not allowed" for name in attributes if name.startswith("on") or name == "style"]

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()} does not close the last open element")

    def handle_data(self, data):
        if self._open and self._open[-1] == "title":
            self.title += data


def make(folder):
    done = subprocess.run([DOCS, "--output", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def contents(folder):
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="site.")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name) / "site"
        make(cls.folder)
        cls.pages = {path.relative_to(cls.folder).as_posix(): Page(path.read_text(encoding="utf-8"))
                     for path in sorted(cls.folder.rglob("*.html"))}

    def test_site_has_every_document_and_manual_page(self):
        documents = [path for path in (SOURCE / "docs").rglob("*.md") if path.name != "README.md"]
        wanted = {path.relative_to(SOURCE / "docs").with_suffix(".html").as_posix() for path in documents}
        wanted |= {f"man/{path.name}.html" for path in (SOURCE / "docs/man").iterdir()}
        wanted |= {"index.html", "contents.html", "contributing.html", "testing.html"}
        self.assertGreater(len(wanted), 30)
        self.assertEqual({place for place in self.pages if not place.startswith("examples/")}, wanted)

    def test_pages_are_well_formed(self):
        for place, page in self.pages.items():
            with self.subTest(page=place):
                self.assertEqual(page.wrong, [])
                self.assertEqual([name for name in set(page.ids) if page.ids.count(name) > 1], [])

    def test_each_page_has_one_heading_a_title_and_a_description(self):
        titles = []
        for place, page in self.pages.items():
            with self.subTest(page=place):
                self.assertEqual([page.elements.count(tag) for tag in ("h1", "title", "main", "nav")], [1, 1, 1, 1])
                self.assertTrue(page.title)
                self.assertTrue(page.description)
                titles.append(page.title)
        self.assertEqual(len(titles), len(set(titles)))

    def test_levels_of_headings_are_not_skipped(self):
        for place, page in self.pages.items():
            with self.subTest(page=place):
                levels = [int(tag[1]) for tag in page.elements if re.fullmatch("h[1-6]", tag)]
                for before, level in zip([0] + levels, levels):
                    self.assertLessEqual(level, before + 1)

    def test_links_and_anchors_lead_somewhere(self):
        for place, page in self.pages.items():
            with self.subTest(page=place):
                self.assertGreater(len(page.links), 20)
                for link in page.links:
                    url = urllib.parse.urlsplit(link)
                    if url.scheme:
                        self.assertIn(url.scheme, ("https", "http"))
                        continue
                    with self.subTest(link=link):
                        there = (self.folder / place).parent / urllib.parse.unquote(url.path) if url.path else self.folder / place
                        target = self.pages.get(there.resolve().relative_to(self.folder.resolve()).as_posix())
                        self.assertIsNotNone(target)
                        self.assertIn(urllib.parse.unquote(url.fragment), ["", *target.ids])

    def test_pages_fetch_nothing_and_have_no_scripts(self):
        for place, page in self.pages.items():
            with self.subTest(page=place):
                self.assertNotIn("script", page.elements)
                self.assertNotIn("iframe", page.elements)
                for fetched in page.fetched:
                    self.assertEqual(urllib.parse.urlsplit(fetched).scheme, "")
                    self.assertTrue(((self.folder / place).parent / fetched).is_file())
        style = (self.folder / "style.css").read_text(encoding="utf-8")
        self.assertNotIn("url(", style)
        self.assertNotIn("@import", style)

    def test_navigation_marks_the_current_page(self):
        """Tests that the navigation of each page marks the page, and that exactly one section is open. Examples that
        docs/README.md does not name need no mark."""
        marked = [place for place, page in self.pages.items() if page.current]
        self.assertEqual({place for place in self.pages if not place.startswith("examples/")} - set(marked), set())
        self.assertIn("examples/service.cc.html", marked)
        for place in set(marked) - {"index.html", "contents.html"}:
            with self.subTest(page=place):
                self.assertEqual(self.pages[place].sections[True], 1)
                self.assertGreater(self.pages[place].sections[False], 3)

    def test_manual_pages_that_text_names_are_links(self):
        self.assertIn("man/nettraced.toml.5.html", self.pages)
        self.assertIn("../man/nettrace-ctl.1.html", self.pages["reference/control.html"].links)
        self.assertIn("nettrace-record.1.html", self.pages["man/nettrace-dump.1.html"].links)
        self.assertIn("../examples/service.cc.html", self.pages["guides/instrumenting.html"].links)

    def test_output_is_reproducible(self):
        again = pathlib.Path(self.temporary.name) / "again"
        make(again)
        self.assertEqual(contents(again), contents(self.folder))
        make(again)  # over the existing site
        self.assertEqual(contents(again), contents(self.folder))

    def test_a_folder_with_other_files_is_refused(self):
        folder = pathlib.Path(self.temporary.name) / "mine"
        folder.mkdir()
        (folder / "letter.txt").write_text("dear", encoding="utf-8")
        done = subprocess.run([DOCS, "--output", folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("other files", done.stderr)
        self.assertEqual([path.name for path in folder.iterdir()], ["letter.txt"])


class ConversionTest(unittest.TestCase):
    """Tests single pages, from a small tree made for the test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="site.")
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        specification = importlib.util.spec_from_file_location("docs", DOCS)
        self.docs = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(self.docs)
        self.docs.REPOSITORY = self.tree
        self.write("README.md", "# Start\n\nText.\n")
        self.write("CONTRIBUTING.md", "# Contributing\n\nText.\n")
        self.write("tests/README.md", "# Tests\n\nText.\n")
        self.write("docs/man/a.1", ".Dd January 1, 2026\n.Dt A 1\n.Os\n.Sh NAME\n.Nm a\n.Nd does it\n.Sh DESCRIPTION\nSee .\n")
        self.index("[c](../CONTRIBUTING.md), [t](../tests/README.md), [a](man/a.1), [b](b.md)")

    def write(self, path, text):
        (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
        (self.tree / path).write_text(text, encoding="utf-8")

    def index(self, text):
        self.write("docs/README.md", f"# All\n\nText.\n\n## Pages\n\n{text}\n")

    def page(self, markdown):
        """Returns the HTML of docs/b.md."""
        self.write("docs/b.md", markdown)
        self.docs.make_site(self.tree / "site")
        return (self.tree / "site/b.html").read_text(encoding="utf-8").split("<main", 1)[1].split("</main>")[0]

    def test_link_to_no_page_is_text(self):
        page = self.page("# B\n\nSee [the source](../src/main.cc) and [there](https://example.com/).\n")
        self.assertIn("<span>the source</span>", page)
        self.assertIn('<a href="https://example.com/">there</a>', page)

    def test_link_whose_text_is_a_path_has_the_title(self):
        self.assertIn('<a href="contributing.html#x">Contributing</a>', self.page("# B\n\nSee [CONTRIBUTING.md](../CONTRIBUTING.md#x).\n"))

    def test_pictures_are_copied(self):
        self.write("docs/pictures/a.svg", "<svg/>")
        self.assertIn('<img src="pictures/a.svg" alt="A">', self.page("# B\n\nText.\n\n![A](pictures/a.svg)\n"))
        self.assertEqual((self.tree / "site/pictures/a.svg").read_text(encoding="utf-8"), "<svg/>")

    def test_picture_that_does_not_exist_is_an_error(self):
        for picture in ("none.svg", "../README.md"):
            with self.subTest(picture=picture), self.assertRaisesRegex(self.docs.DocumentError, "docs/b.md: .* " + picture):
                self.page(f"# B\n\nText.\n\n![A]({picture})\n")

    def test_manual_pages_in_text_are_links_and_others_are_not(self):
        page = self.page("# B\n\nSee a(1), `a(1)` and ls(1); then a(1).\n\n    a(1)\n")
        self.assertEqual(page.count('<a href="man/a.1.html">a(1)</a>'), 3)

    def test_anchors_match_github(self):
        page = self.page("# B\n\nText.\n\n## What `is`, and isn't_x (2)\n\n## Twice\n\n## Twice\n")
        self.assertEqual(re.findall(r'<h2 id="(.*?)"', page), ["what-is-and-isnt_x-2", "twice", "twice-1"])

    def test_text_is_escaped_and_raw_html_is_left_out(self):
        page = self.page("# B\n\n`<b>&`\n\n<script>alert(1)</script>\n\n```cpp\nint a<b>;  // &\n\n```\n")
        self.assertIn('<code class="whole">&lt;b&gt;&amp;</code>', page)
        self.assertNotIn("<script", page)
        self.assertIn("// &amp;", page)

    def test_code_is_coloured_without_a_change_of_its_text(self):
        page = self.page("# B\n\n```cpp\n\n  int x = 0;\n\n```\n\n```nosuchlanguage\n x\n```\n")
        texts = [re.sub("<.*?>", "", block) for block in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)]
        self.assertEqual(texts, ["\n  int x = 0;\n\n", " x\n"])
        self.assertIn('<span class="kt">int</span>', page)

    def test_page_that_the_index_leaves_out_is_an_error(self):
        self.index("[c](../CONTRIBUTING.md), [t](../tests/README.md), [a](man/a.1)")
        with self.assertRaisesRegex(self.docs.DocumentError, "does not link to docs/b.md"):
            self.page("# B\n\nText.\n")

    def test_page_without_a_title_is_an_error(self):
        with self.assertRaisesRegex(self.docs.DocumentError, "docs/b.md: no heading"):
            self.page("Text.\n")


def require():
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if importlib.util.find_spec("pygments") is None:
        missing.append("python3-pygments")
    if missing:
        raise script.Skipped(f"not installed: {', '.join(missing)} (./run docs installs them)")


if __name__ == "__main__":
    script.run_cases(require)
