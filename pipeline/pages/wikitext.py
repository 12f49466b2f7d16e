"""Wikitext to plain text: mwparserfromhell parses, this says what of it is text.

Its own `strip_code` (0.7) leaves "thumb|right|" of pictures, the names of categories and other
languages, footnotes in the middle of sentences, and runs the cells of tables together. What is no
prose is left out: templates (not expanded: a page does not hold what they make), footnotes,
pictures with their captions, galleries, comments, categories, links to other languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import mwparserfromhell
from mwparserfromhell.nodes import (
    ExternalLink,
    Heading,
    HTMLEntity,
    Node,
    Tag,
    Text,
    Wikilink,
)
from mwparserfromhell.parser import ParserError

# Tags whose content is no prose; of the rest the content stays.
SKIPPED = {
    "ref", "references", "gallery", "timeline", "imagemap", "templatestyles", "score", "graph",
    "indicator", "maplink", "mapframe", "section", "inputbox", "hiero", "rt", "rp", "style",
    "categorytree", "includeonly",
}  # fmt: skip
LINES = {"br", "p", "div", "blockquote", "hr", "table", "tr", "li", "dd", "dt", "pre", "poem"}

# The part of a link before its colon that makes it no prose: namespaces of pictures and categories
# by their names in every dump (English) and in Chinese ones; `[[fr:Eau]]`, a page in another
# language, is told from a title such as `[[War: a history]]` by its small letters.
NO_PROSE = re.compile(
    r"\s*(?:file|image|media|category|文件|檔案|档案|圖像|图像|分类|分類)\s*:", re.IGNORECASE
)
OTHER_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:\S")
_VARIANTS = re.compile(r"-\{(?!\{)([^{}]*)\}-")
_MAGIC = re.compile(r"__[A-Z]{3,20}__|^----+", re.MULTILINE)
_EMPTY_ITEM = re.compile(r"^\*+[ \t]*(?:\n|\Z)", re.MULTILINE)
_ATTRIBUTES = re.compile(r"(?:[a-z]+ ?= ?(?:\"[^\"]*\"|[^\s\"]+) ?)+")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n")
_SPACES = re.compile(r"(?<=\S)[ \t]{2,}")
_EMPTY_BRACKETS = re.compile(r"[ \t]*(?:\([\s,;:]*\)|（[\s，,、；;：:]*）)")
CHINESE = ("zh-hans", "zh-cn", "zh-hant", "zh-tw", "zh-hk", "zh")  # the first that is given


class BadWikitext(ValueError):
    """The parser gives up."""


def plain_text(wikitext: str) -> str:
    """Prose of a page, headings on lines of their own, rows of tables as `a | b`.

    Raises:
        BadWikitext: markup nested too deeply.
    """
    try:
        code = mwparserfromhell.parse(_VARIANTS.sub(_variant, wikitext), skip_style_tags=True)
        text = "".join(_texts(code.nodes))
    except (ParserError, RecursionError) as error:
        raise BadWikitext(f"the parser gives up: {error}") from None
    text = _EMPTY_BRACKETS.sub("", _MAGIC.sub("", text))
    text = _EMPTY_ITEM.sub("", text)  # a template stood there, or in the brackets
    text = _SPACES.sub(" ", text.replace("'''", "").replace("''", ""))
    text = "\n".join([line.strip() for line in text.split("\n")])
    return _BLANK_LINES.sub("\n\n", text).strip()


def _variant(match: re.Match[str]) -> str:
    """-{zh-hans:软件; zh-hant:軟體}- is one word that each reader sees in their own script."""
    body = match[1]
    flag, bar, rest = body.partition("|")
    if bar:
        if set("TH-") & set(flag.upper().replace(" ", "").split(";")):
            return ""  # says how the page converts its title or its words, and shows nothing
        body = rest
    named = (part.partition(":") for part in body.split(";") if re.match(r"\s*zh[a-z-]*\s*:", part))
    forms = {name.strip().lower(): form.strip() for name, _, form in named}
    return next((forms[name] for name in CHINESE if name in forms), "" if forms else body)


def _texts(nodes: Iterable[Node]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, Text):
            yield str(node.value)
        elif isinstance(node, Wikilink):
            yield from _link(node)
        elif isinstance(node, Tag):
            yield from _tag(node)
        elif isinstance(node, Heading):
            yield from ("\n", "".join(_texts(node.title.nodes)).strip(), "\n")
        elif isinstance(node, ExternalLink):
            if node.title is not None:
                yield from _texts(node.title.nodes)
            elif not node.brackets:
                yield str(node.url)
        elif isinstance(node, HTMLEntity):
            yield node.normalize().replace("\xa0", " ")


def _link(node: Wikilink) -> Iterator[str]:
    title = str(node.title)
    # [[:Category:x]] and [[:fr:x]], with a colon in front, are links to read.
    if NO_PROSE.match(title) or (node.text is None and OTHER_LANGUAGE.match(title)):
        return
    if node.text is not None and str(node.text).strip():
        yield from _texts(node.text.nodes)
    else:
        yield title.removeprefix(":")


def _tag(node: Tag) -> Iterator[str]:
    name = str(node.tag).strip().lower()
    if name in SKIPPED:
        return
    if name == "table":
        yield from ("\n", *_rows(node), "\n")
        return
    if name in LINES and node.wiki_markup is None:
        yield "\n"
    elif name == "li":
        yield "*"  # `#`, a numbered list, too
    if node.contents is not None:
        yield from _texts(node.contents.nodes)
    if name in LINES and node.wiki_markup is None and name != "br":
        yield "\n"


def _rows(table: Tag) -> Iterator[str]:
    """Cells of a row on one line, as the tables of HTML come out (`rewrites.py`)."""
    cells: list[str] = []
    for node in table.contents.nodes:
        if not isinstance(node, Tag):
            continue
        name = str(node.tag).strip().lower()
        inside = "".join(_texts(node.contents.nodes)) if name in ("td", "th", "caption") else ""
        if name == "tr":
            if any(cells):
                yield " | ".join(cells) + "\n"
            cells = []
            yield from _rows(node)
        elif name == "caption" or inside.startswith("+"):  # `|+ caption`, which is parsed as a cell
            yield inside.removeprefix("+").strip() + "\n"
        elif name in ("td", "th"):
            cell = " ".join(inside.split())
            cells.append("" if _ATTRIBUTES.fullmatch(cell) else cell)  # before a template
    if any(cells):
        yield " | ".join(cells) + "\n"
