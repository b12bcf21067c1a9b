#!/usr/bin/python3
"""Makes the documentation site: README.md, docs/, the manual pages, CONTRIBUTING.md and the examples as static HTML,
without scripts and without anything from the network. docs/README.md defines the navigation.

A link to a file that is not a page of the site, such as a source file, is shown as plain text.

examples:
  ./run docs                       # into build-docs/; open build-docs/index.html
  ./run docs --output /srv/www/nettraced

exit status: 0 done, 1 a source cannot be converted or docs/README.md does not list a page, 2 wrong usage.
"""

import argparse
import dataclasses
import html
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import typing
import xml.etree.ElementTree as ET

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
STYLE = REPOSITORY / "docs/style.css"
INDEX = "docs/README.md"
SITE = "nettraced"
# Documents whose place on the site is not their path below docs/.
PLACES = {"README.md": "index.html", INDEX: "contents.html", "CONTRIBUTING.md": "contributing.html",
          "tests/README.md": "testing.html"}
# Sources of examples, with their languages.
LANGUAGES = {".c": "c", ".cc": "cpp", ".h": "cpp", ".py": "python"}
MANUAL = re.compile(r"\b([a-z][\w.-]*)\(([1-8])\)")
DESCRIPTION_LENGTH = 160
# Maximum length, in characters, of code that is never broken into lines. Such code fits on the narrowest phones.
WHOLE_CODE = 24


class DocumentError(Exception):
    """A source that cannot be converted to a page; the message names it."""


@dataclasses.dataclass
class Page:
    source: str  # Path in the repository.
    place: str  # Path on the site.
    body: ET.Element = None
    title: str = ""
    description: str = ""
    headings: list = dataclasses.field(default_factory=list)  # (id, text) of the headings below the title.

    def link_to(self, other):
        return posixpath.relpath(other.place, posixpath.dirname(self.place) or ".")


def find_pages():
    """Returns all pages by their source: README.md, the documents, the manual pages and the examples."""
    sources = ["README.md", "CONTRIBUTING.md", "tests/README.md"]
    for folder, pattern in (("docs", "**/*.md"), ("docs/man", "*.[1-8]"), ("examples", "**/*")):
        sources += sorted(path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / folder).glob(pattern)
                          if folder != "examples" or path.suffix in LANGUAGES)
    return {source: Page(source, PLACES.get(source) or place_of(source)) for source in sources}


def place_of(source):
    path = source.removeprefix("docs/")
    return path.removesuffix(".md") + ".html"


def convert(command, source):
    """Converts a file with a program, and returns what the program prints as the content of an element `main`."""
    done = subprocess.run([*command, REPOSITORY / source], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DocumentError(f"{source}: {command[0]}: {done.stderr.strip()}")
    try:
        return ET.fromstring(f"<main>{done.stdout}</main>")
    except ET.ParseError as error:
        raise DocumentError(f"{source}: {command[0]} makes HTML that is not well-formed: {error}") from error


def keep_code_whole(body):
    """Marks short code in the text, so that browsers do not break it into lines."""
    for parent in body.iter():
        for code in parent.findall("code") if parent.tag != "pre" else ():
            if "class" not in code.attrib and len("".join(code.itertext())) <= WHOLE_CODE:
                code.set("class", "whole")


def text_of(element):
    return " ".join("".join(element.itertext()).split())


def anchor_of(heading, taken):
    """Returns the id that GitHub gives to a heading, so that links work on GitHub and on the site."""
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    number = taken.get(anchor, 0)
    taken[anchor] = number + 1
    return f"{anchor}-{number}" if number else anchor


def wrap(root, tag, wrapper):
    """Puts each element named `tag` into a `div` of the class `wrapper`."""
    for parent in list(root.iter()):
        for i, child in enumerate(parent):
            if child.tag == tag and parent.get("class") != wrapper:
                outer = ET.Element("div", {"class": wrapper})
                outer.tail, child.tail = child.tail, None
                outer.append(child)
                parent[i] = outer


def unwrap(root, wanted):
    """Replaces each element for which `wanted` is true with a `span` of its text."""
    for element in root.iter():
        if wanted(element):
            element.tag = "span"
            element.attrib.clear()


def colour(code, lexer):
    """Gives colours to the text of a `code` element."""
    # Imported here, because --help must work before this package is installed.
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    text = "".join(code.itertext())
    # Pygments would drop empty lines at the beginning, and change line terminators of other systems.
    coloured = ET.fromstring(f"<code>{highlight(text, lexer, HtmlFormatter(nowrap=True))}</code>")
    code.text = coloured.text
    code[:] = list(coloured)


def lexer_of(language):
    from pygments import lexers, util
    try:
        return lexers.get_lexer_by_name(language, stripnl=False)
    except util.ClassNotFound:
        return None


def read_markdown(page):
    """Converts a document with cmark-gfm, which follows GitHub's rules."""
    page.body = convert(["cmark-gfm", "--extension", "table", "--github-pre-lang"], page.source)
    taken = {}
    for element in page.body.iter():
        if re.fullmatch("h[1-6]", element.tag):
            element.set("id", anchor_of(text_of(element), taken))
            if element.tag == "h2":
                page.headings.append((element.get("id"), text_of(element)))
        if element.tag == "pre" and element.get("lang"):
            lexer = lexer_of(element.attrib.pop("lang"))
            if lexer is not None:
                colour(element.find("code"), lexer)
        for cell in element if element.tag == "tr" else ():
            alignment = cell.attrib.pop("align", None)
            if alignment:
                cell.set("class", alignment)
    title = page.body.find("h1")
    if title is None:
        raise DocumentError(f"{page.source}: no heading of the first level")
    first = page.body.find("p")
    page.title, page.description = text_of(title), "" if first is None else text_of(first)
    drop_empty_heads(page.body)


def drop_empty_heads(body):
    """Removes the head rows of tables whose head row is empty."""
    for table in body.iter("table"):
        head = table.find("thead")
        if head is not None and not text_of(head):
            table.remove(head)


def read_manual(page):
    """Converts a manual page with mandoc. Its sections become headings below the page's name."""
    page.body = convert(["mandoc", "-T", "html", "-O", "fragment,man=%N.%S"], page.source)
    name, section = posixpath.basename(page.source).rsplit(".", 1)
    for table in page.body.findall("table"):  # the page's header and footer
        page.body.remove(table)
    for element in page.body.iter():
        if element.tag in ("h1", "h2"):
            element.tag = {"h1": "h2", "h2": "h3"}[element.tag]
            if element.tag == "h2":
                page.headings.append((element.get("id"), text_of(element)))
    heading = ET.Element("h1")
    heading.text = page.title = f"{name}({section})"
    page.body.insert(0, heading)
    says = next((span for span in page.body.iter("span") if span.get("class") == "Nd"), None)
    if says is None:
        raise DocumentError(f"{page.source}: no description in its section NAME")
    page.description = text_of(says)


def read_source(page):
    """Converts the source of an example."""
    page.body = ET.Element("main")
    heading = ET.SubElement(page.body, "h1")
    page.title = heading.text = page.source
    code = ET.SubElement(ET.SubElement(page.body, "pre"), "code")
    code.text = (REPOSITORY / page.source).read_text(encoding="utf-8")
    page.description = f"{page.source}, one of the examples."
    colour(code, lexer_of(LANGUAGES[posixpath.splitext(page.source)[1]]))


def resolve(page, path, pages):
    """Returns the page that a link's path leads to; None if it is not a page of the site."""
    return pages.get(posixpath.normpath(posixpath.join(posixpath.dirname(page.source), path))) if path else page


def link_pages(page, pages):
    """Converts the links to files of the repository: to links of the site, or to plain text if the file is not a page.
    A link whose text is the path of a document shows the document's title instead. Other links stay as they are."""
    for link in page.body.iter("a"):
        target = link.get("href")
        if target is None or "://" in target or target.startswith("mailto:"):
            continue
        path, hash_sign, fragment = target.partition("#")
        other = resolve(page, path, pages)
        if other is None:
            del link.attrib["href"]
            continue
        link.set("href", (page.link_to(other) if path else "") + hash_sign + fragment)
        if path.endswith(".md") and text_of(link).endswith(posixpath.basename(path)):
            link.text = other.title
            link[:] = []
    unwrap(page.body, lambda element: element.tag == "a" and "href" not in element.attrib)


def find_pictures(page):
    """Returns the paths, in the repository, of the pictures that a page shows. Replaces their addresses in the page by
    their places on the site."""
    pictures = set()
    for image in page.body.iter("img"):
        source = posixpath.normpath(posixpath.join(posixpath.dirname(page.source), image.get("src")))
        if not source.startswith("docs/") or not (REPOSITORY / source).is_file():
            raise DocumentError(f"{page.source}: there is no picture {image.get('src')} below docs/")
        image.set("src", posixpath.relpath(source.removeprefix("docs/"), posixpath.dirname(page.place) or "."))
        pictures.add(source)
    return pictures


def split_at_manuals(text, page, pages):
    """Returns the text before the first name of a manual page, and a link for each such name, followed by the text up
    to the next name."""
    before, links, last = None, [], 0
    for found in MANUAL.finditer(text):
        other = pages.get(f"docs/man/{found[1]}.{found[2]}")
        if other is None or other is page:
            continue
        if links:
            links[-1].tail = text[last:found.start()]
        else:
            before = text[:found.start()]
        link = ET.Element("a", {"href": page.link_to(other)})
        link.text = found[0]
        links.append(link)
        last = found.end()
    if links:
        links[-1].tail = text[last:]
    return (before, links) if links else (text, [])


def link_names(element, page, pages):
    """Turns names of manual pages in the text, such as nettrace(1), and paths of examples into links."""
    if element.tag in ("a", "pre", "h1", "h2", "h3"):
        return
    if element.tag == "code" and element.text and not len(element):
        other = pages.get(posixpath.normpath(element.text))
        if other is not None and other is not page and element.text.startswith("examples/"):
            link = ET.SubElement(element, "a", {"href": page.link_to(other)})
            link.text, element.text = element.text, None
            return
    for child in list(element):
        link_names(child, page, pages)
    for i, child in reversed(list(enumerate(element))):
        child.tail, links = split_at_manuals(child.tail or "", page, pages)
        element[i + 1:i + 1] = links
    element.text, links = split_at_manuals(element.text or "", page, pages)
    element[:0] = links


class Section(typing.NamedTuple):
    title: str
    entries: list  # (page, text of the link)


def read_navigation(index, pages):
    """Returns the sections of docs/README.md, each with the pages that it links to."""
    by_place, sections = {page.place: page for page in pages.values()}, []
    for element in index.body.iter():
        if element.tag == "h2":
            sections.append(Section(text_of(element), []))
        if element.tag == "a" and "href" in element.attrib and sections:
            place = posixpath.normpath(posixpath.join(posixpath.dirname(index.place), element.get("href")))
            page = by_place.get(place)
            if page is not None and all(page is not other for other, _ in sections[-1].entries):
                sections[-1].entries.append((page, text_of(element)))
    listed = {page.place for section in sections for page, _ in section.entries} | {"index.html", index.place}
    missing = [page.source for page in pages.values()
               if page.place not in listed and not page.source.startswith("examples/")]
    if missing:
        raise DocumentError(f"{INDEX} does not link to {', '.join(missing)}")
    return [section for section in sections if section.entries]


def add_link(parent, page, other, text):
    """Adds a list entry with a link from `page` to `other`, and returns the entry. Marks the link if both are the same
    page."""
    entry = ET.SubElement(parent, "li")
    link = ET.SubElement(entry, "a", {"href": page.link_to(other)})
    link.text = text
    if other is page:
        link.set("aria-current", "page")
    return entry


def navigation(page, pages, sections):
    """Returns the site's contents. The section that contains the current page is open, with the page's headings below
    the page. If no section contains the page, all sections are open."""
    nav = ET.Element("nav", {"id": "contents", "aria-label": "Contents"})
    start = ET.SubElement(nav, "ul")
    for other, text in ((pages["README.md"], "Start"), (pages[INDEX], pages[INDEX].title)):
        add_link(start, page, other, text)
    here = next((section for section in sections if any(other is page for other, _ in section.entries)), None)
    for section in sections:
        details = ET.SubElement(nav, "details", {"open": "open"} if here in (section, None) else {})
        ET.SubElement(details, "summary").text = section.title
        group = ET.SubElement(details, "ul")
        for other, text in section.entries:
            entry = add_link(group, page, other, text)
            if other is page and section is here and page.headings:
                inner = ET.SubElement(entry, "ul")
                for anchor, heading in page.headings:
                    ET.SubElement(ET.SubElement(inner, "li"), "a", {"href": "#" + anchor}).text = heading
    return nav


def shorten(text):
    if len(text) <= DESCRIPTION_LENGTH:
        return text
    return text[:DESCRIPTION_LENGTH].rsplit(" ", 1)[0] + " …"


def to_html(element):
    return ET.tostring(element, encoding="unicode", method="html")


def render(page, pages, sections):
    """Returns the page's HTML."""
    up = posixpath.relpath(".", posixpath.dirname(page.place) or ".")
    root = "" if up == "." else up + "/"
    title = page.title if page.title == SITE else f"{page.title} - {SITE}"
    page.body.set("id", "main")
    wrap(page.body, "table", "scroll")
    keep_code_whole(page.body)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)}</title>
<meta name="description" content="{html.escape(shorten(page.description))}">
<link rel="stylesheet" href="{root}style.css">
</head>
<body>
<header><a class="skip" href="#main">To the text</a><a class="site" href="{root}index.html">{SITE}</a>\
<a class="to-contents" href="#contents">Contents</a></header>
{to_html(page.body)}
{to_html(navigation(page, pages, sections))}
</body>
</html>
"""


def make_site(output):
    pages = find_pages()
    for page in pages.values():
        if page.source.endswith(".md"):
            read_markdown(page)
        elif page.source.startswith("docs/man/"):
            read_manual(page)
        else:
            read_source(page)
    for page in pages.values():
        if page.source.startswith("docs/man/"):
            # Links to manual pages become file names, which link_pages resolves like links in Markdown.
            for link in page.body.iter("a"):
                if link.get("class") == "Xr":
                    link.set("href", posixpath.basename(link.get("href")))
        link_pages(page, pages)
        link_names(page.body, page, pages)
    sections = read_navigation(pages[INDEX], pages)
    pictures = sorted(set().union(*map(find_pictures, pages.values())))
    shutil.rmtree(output, ignore_errors=True)
    for page in pages.values():
        path = output / page.place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(page, pages, sections), encoding="utf-8")
    for picture in pictures:
        path = output / picture.removeprefix("docs/")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / picture, path)
    shutil.copyfile(STYLE, output / "style.css")
    return [*pages, *pictures]


def write_depfile(path, output, made_of):
    """Writes the depfile for Ninja, which lists the files that the site is made of."""
    sources = [REPOSITORY / source for source in made_of] + [STYLE, pathlib.Path(__file__).resolve()]
    names = " ".join(str(source).replace(" ", "\\ ") for source in sources)
    path.write_text(f"{output}: {names}\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(
        prog="./run docs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=REPOSITORY / "build-docs", metavar="DIR",
                        help="output folder, whose contents are replaced (default: build-docs)")
    parser.add_argument("--depfile", type=pathlib.Path, metavar="FILE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    marker = args.output / "style.css"
    if args.output.exists() and not marker.exists() and (not args.output.is_dir() or any(args.output.iterdir())):
        print(f"docs: {args.output} has other files in it; name a new or an empty folder", file=sys.stderr)
        return 1
    try:
        made_of = make_site(args.output)
        if args.depfile:
            write_depfile(args.depfile, args.output, made_of)
    except (DocumentError, OSError) as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    print(f"wrote {sum(not source.endswith('.svg') for source in made_of)} pages to {args.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
