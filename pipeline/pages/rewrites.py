"""Rewrites of a parsed page before its text is taken: what plain extraction gets wrong.

`REWRITES` is the visible list, applied in order. Each is tried only where the page may hold what it
selects, so a page without formulas pays nothing for them. A new one is a function and a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pipeline.pages.tree import Node, Page, select

_CJK = r"\u2e80-\u2fdf\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff"
# One of these begins each of them in UTF-8; E2, for radicals, begins dashes and quotes too.
HAN_BYTES = (*range(0xE3, 0xEA), 0xEF, 0xF0)
_INLINE = r"(?:</?(?:a|abbr|b|code|em|font|i|mark|s|small|span|strong|u)\b[^<>]{0,300}>)*"
_WRAPPED = re.compile(rf"([{_CJK}]{_INLINE})[ \t]*\r?\n\s*({_INLINE})(?=[{_CJK}])")
_HAN_BEGINS_LINE = re.compile(rf"\n\s*{_INLINE}[{_CJK}]")  # a tenth of the time: \n is rare
_VERBATIM = re.compile(r"(<(pre|script|style|textarea)\b.*?</\2\s*>)", re.IGNORECASE | re.DOTALL)

_SUPERSCRIPT = str.maketrans("0123456789+-−=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ")
_SUBSCRIPT = str.maketrans("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")
_BLOCKS_IN_CELLS = ", ".join(
    f"td {block}"
    for block in ["p + *", "div", "pre", "ul", "ol", "dl", "table", "blockquote", "h1", "h2", "h3"]
)


def join_wrapped_han(html: str) -> str:
    """Take out line breaks of the source between two Han characters, kana or CJK marks: a browser
    shows a space there, and Chinese has none. Works on the source, `<pre>` and scripts apart."""
    if _HAN_BEGINS_LINE.search(html) is None:
        return html
    parts = _VERBATIM.split(html)
    parts[::3] = [_WRAPPED.sub(r"\1\2", part) for part in parts[::3]]
    del parts[2::3]  # the inner group: the names of the verbatim tags
    return "".join(parts)


def rewrite(page: Page) -> None:
    """Apply every rewrite of the list to the tree of `page`."""
    for selector, change in REWRITES:
        if page.may_hold(selector):
            for node in select(page.tree.body, selector):
                change(page, node)


def _remove(page: Page, node: Node) -> None:
    node.decompose()


def _replace(page: Page, node: Node, text: str) -> None:
    if node.parent_node is not None:
        node.parent_node.replace_child(page.tree.create_text_node(text), node)


def _superscript(page: Page, node: Node) -> None:
    _raise_or_lower(page, node, _SUPERSCRIPT, "^")


def _subscript(page: Page, node: Node) -> None:
    _raise_or_lower(page, node, _SUBSCRIPT, "_")


def _raise_or_lower(page: Page, node: Node, table: dict[int, int], mark: str) -> None:
    """10<sup>25</sup> is not 1025: Unicode digits where they exist, else `^`; words stay."""
    text = node.text_content.strip()
    if re.search(r"\d", text) and not text.startswith("["):  # [3] is a note, and reads as one
        every = all(ord(character) in table for character in text)
        _replace(page, node, text.translate(table) if every else mark + text)


def _formula(page: Page, node: Node) -> None:
    """The TeX of a formula, once, in place of its rendered forms."""
    tex = _tex(node)
    if tex:
        display = node.get_attribute("display") == "block" or "display" in (node.class_name or "")
        _replace(page, node, f"$${tex}$$" if display else f"${tex}$")


def _tex(node: Node) -> str:
    annotation = node.query_selector('annotation[encoding="application/x-tex"]')
    if annotation is not None:
        return _bare(annotation.text_content)
    for owner in [node, *select(node, "math[alttext], img[alt]")]:
        for name in ("alttext", "alt"):
            if owner.get_attribute(name):
                return _bare(owner.get_attribute(name))
    return ""


def _bare(tex: str) -> str:
    """Without the dollar signs or the \\displaystyle that its producer put around."""
    tex = re.sub(r"^\{\\displaystyle\s+(.*)\}$", r"\1", tex.strip(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", tex.strip("$")).strip()


def _mathjax_script(page: Page, node: Node) -> None:
    display = "mode=display" in (node.get_attribute("type") or "")
    tex = _bare(node.text_content)
    _replace(page, node, f"$${tex}$$" if display else f"${tex}$")


def _table(page: Page, node: Node) -> None:
    """A table of data: one row a line, cells apart. A table that lays out blocks stays."""
    code = node.query_selector("td pre") if page.may_hold("pre") else None
    if code is not None and code.text_content.strip() == node.text_content.strip():
        node.parent_node.replace_child(code, node)  # code beside the gutter that was removed
    if node.query_selector(_BLOCKS_IN_CELLS) is not None:
        return
    for row in select(node, "tr"):
        cells = [cell for cell in row.children[:] if cell.tag in ("td", "th")]
        line = page.tree.create_element("div")  # trafilatura drops bare text of a row
        line.text_content = " | ".join([" ".join(cell.text_content.split()) for cell in cells])
        row.replace_children(line)


# (selector, what is done to each match)
REWRITES: list[tuple[str, Callable[[Page, Node], None]]] = [
    ("rt, rp, rtc", _remove),
    (".MathJax, .MathJax_Preview, .MathJax_Display, .MathJax_SVG", _remove),
    ('script[type^="math/tex"]', _mathjax_script),
    (".katex-display > .katex, .katex", _formula),
    (".mwe-math-element, mjx-container", _formula),
    ("math", _formula),
    ("img.tex, img.math, img.latex, img.equation", _formula),
    ("sup", _superscript),
    ("sub", _subscript),
    (
        ".linenos, .lineno, .linenumber, .line-number, .line-numbers, .line-numbers-rows, "
        ".gutter, .rouge-gutter, .blob-num, .hljs-ln-numbers",
        _remove,
    ),
    ("table", _table),
]
