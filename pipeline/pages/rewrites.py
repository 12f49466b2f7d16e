"""Rewrites of a parsed page before its text is taken: what plain extraction gets wrong.

`REWRITES` is the visible list, applied in order. Each is tried only where its needle stands in the
page, so a page without formulas pays nothing for them. A new one is a function and a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Tree = Any  # resiliparse HTMLTree: it has no type stubs
Node = Any  # resiliparse ElementNode

_CJK = r"\u2e80-\u2fdf\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff"
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


def select(node: Node, selector: str) -> tuple[Node, ...]:
    """Matches below `node` as a tuple: going through resiliparse's own list is quadratic (2.0; 600
    rows take 2 s), its slice is not."""
    found: tuple[Node, ...] = node.query_selector_all(selector)[:]
    return found


def join_wrapped_han(html: str) -> str:
    """Take out line breaks of the source between two Han characters, kana or CJK marks: a browser
    shows a space there, and Chinese has none. Works on the source, `<pre>` and scripts apart."""
    if _HAN_BEGINS_LINE.search(html) is None:
        return html
    parts = _VERBATIM.split(html)
    parts[::3] = [_WRAPPED.sub(r"\1\2", part) for part in parts[::3]]
    del parts[2::3]  # the inner group: the names of the verbatim tags
    return "".join(parts)


def rewrite(tree: Tree, html: str) -> None:
    """Apply every rewrite of the list to `tree`, parsed from `html`."""
    lower = html.encode().lower()  # bytes: four times as fast as characters
    for needles, selector, change in REWRITES:
        if any(needle in lower for needle in needles):
            for node in select(tree.body, selector):
                change(tree, node)


def _remove(tree: Tree, node: Node) -> None:
    node.decompose()


def _replace(tree: Tree, node: Node, text: str) -> None:
    if node.parent_node is not None:
        node.parent_node.replace_child(tree.create_text_node(text), node)


def _superscript(tree: Tree, node: Node) -> None:
    _raise_or_lower(tree, node, _SUPERSCRIPT, "^")


def _subscript(tree: Tree, node: Node) -> None:
    _raise_or_lower(tree, node, _SUBSCRIPT, "_")


def _raise_or_lower(tree: Tree, node: Node, table: dict[int, int], mark: str) -> None:
    """10<sup>25</sup> is not 1025: Unicode digits where they exist, else `^`; words stay."""
    text = node.text_content.strip()
    if re.search(r"\d", text) and not text.startswith("["):  # [3] is a note, and reads as one
        every = all(ord(character) in table for character in text)
        _replace(tree, node, text.translate(table) if every else mark + text)


def _formula(tree: Tree, node: Node) -> None:
    """The TeX of a formula, once, in place of its rendered forms."""
    tex = _tex(node)
    if tex:
        display = node.get_attribute("display") == "block" or "display" in (node.class_name or "")
        _replace(tree, node, f"$${tex}$$" if display else f"${tex}$")


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


def _mathjax_script(tree: Tree, node: Node) -> None:
    display = "mode=display" in (node.get_attribute("type") or "")
    tex = _bare(node.text_content)
    _replace(tree, node, f"$${tex}$$" if display else f"${tex}$")


def _table(tree: Tree, node: Node) -> None:
    """A table of data: one row a line, cells apart. A table that lays out blocks stays."""
    code = node.query_selector("td pre")
    if code is not None and code.text_content.strip() == node.text_content.strip():
        node.parent_node.replace_child(code, node)  # code beside the gutter that was removed
    if node.query_selector(_BLOCKS_IN_CELLS) is not None:
        return
    for row in select(node, "tr"):
        cells = [cell for cell in row.children[:] if cell.tag in ("td", "th")]
        line = tree.create_element("div")
        line.text_content = " | ".join([" ".join(cell.text_content.split()) for cell in cells])
        row.replace_children(line)


# (any of these stands in the page, selector, what is done to each match)
REWRITES: list[tuple[tuple[bytes, ...], str, Callable[[Tree, Node], None]]] = [
    ((b"<ruby",), "rt, rp, rtc", _remove),
    ((b"mathjax",), ".MathJax, .MathJax_Preview, .MathJax_Display, .MathJax_SVG", _remove),
    ((b"math/tex",), 'script[type^="math/tex"]', _mathjax_script),
    ((b"katex",), ".katex-display > .katex, .katex", _formula),
    ((b"mwe-math", b"mjx-container"), ".mwe-math-element, mjx-container", _formula),
    ((b"<math",), "math", _formula),
    ((b"tex", b"math", b"latex"), "img.tex, img.math, img.latex, img.equation", _formula),
    ((b"<sup",), "sup", _superscript),
    ((b"<sub",), "sub", _subscript),
    (
        (b"lineno", b"line-number", b"gutter", b"blob-num", b"hljs-ln"),
        ".linenos, .lineno, .linenumber, .line-number, .line-numbers, .line-numbers-rows, "
        ".gutter, .rouge-gutter, .blob-num, .hljs-ln-numbers",
        _remove,
    ),
    ((b"<table",), "table", _table),
]
