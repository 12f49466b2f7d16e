"""What a language model should look at: prose, without code, addresses and markup.

For a measurement's own view only; nothing here changes a document. The model of filters/language.py
took 104 of 936 Chinese Markdown pages and 86 of 141 Chinese man pages for other languages because
their heads are links and macros (measured for this project's design).
"""

from __future__ import annotations

import re

# A Markdown link or image; its text stays. One level of brackets inside the address.
_LINK = (
    r"!?\[(?P<text>[^\[\]\n]{0,500})\]"
    r"(?:\([^()\n]{0,1000}(?:\([^()\n]{0,500}\)[^()\n]{0,500})?\)|\[[^\]\n]*\])"
)
# Without one of these in the text, its pattern cannot match: most texts skip most patterns.
# In this order; a match becomes a space, or the pattern's first group where it has one.
_MARKUP: tuple[tuple[tuple[str, ...], str], ...] = (
    (("---",), r"(?s)\A---\n.*?\n---[ \t]*(?:\n|\Z)"),  # front matter
    (("```", "~~~"), r"(?ms)^[ \t]*(?P<fence>```|~~~).*?(?:^[ \t]*(?P=fence)|\Z)"),
    (("<!--",), r"(?s)<!--.*?(?:-->|\Z)"),
    (("<",), r"(?is)<(?P<tag>script|style|pre|code|svg)\b.*?(?:</(?P=tag)>|\Z)"),
    (("<",), r"</?[A-Za-z][^<>]{0,2000}>"),
    (("&",), r"&(?:[A-Za-z]{2,8}|#\w{1,7});"),
    (("{{", "{%"), r"(?s)\{\{.{0,300}?\}\}|\{%.{0,300}?%\}"),  # templates
    (("`",), r"``[^\n]{1,300}?``|`[^`\n]{1,300}`"),
    (("$",), r"\$\$[^$]{1,2000}\$\$|\$[^$\n]{1,200}\$"),  # TeX
    (("![",), _LINK),  # images first: they stand inside links
    (("](", "]["), _LINK),
    (("]:",), r"(?m)^[ \t]*\[[^\]\n]+\]:.*$"),  # link definitions
    (("://", "www."), r"(?:(?<![A-Za-z])[A-Za-z][A-Za-z0-9+.-]{1,9}://|www\.)[!-~]+"),
    (("@",), r"(?<![A-Za-z0-9_.+-])[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9.-]{1,63}"),
    # troff: definitions of macros (a page of Tcl opens with 150 lines of them), comments and
    # settings whole, then macros whose arguments are text, then escapes
    (("\n.",), r"(?ms)^\.[ \t]*(?:de|ig)\b.*?(?:^\.\.[ \t]*$|\Z)"),
    (("\n.", "\n'"), r"(?m)^[.'][ \t]*(?:\\\"|(?:TH|so|if|ie|el|de|ds|nr|tr|hy|ad|nh)\b).*$"),
    (("\n.", "\n'"), r"(?m)^[.'][A-Za-z]{1,3}\b"),
    (("\\",), r"\\f(?:[A-Z]|\([A-Z]{2}|\[[A-Z]*\])|\\s[+-]?\d|\\\([a-z]{2}|\\[&|^/,]"),
)
MARKS = "#*_~|>`\\=+"  # headers, emphasis, tables, rules; last, each becomes a space
# What these match stands in one line, and where no needle is, no look is worth it: they try every
# letter, four times the time of a look line by line.
_IN_A_LINE = ("://", "@")
_PATTERNS = tuple(
    (
        needles,
        re.compile(pattern),
        r"\g<text>" if "(?P<text>" in pattern else " ",
        needles[0] in _IN_A_LINE,
    )
    for needles, pattern in _MARKUP
)


def prose(text: str) -> str:
    """`text` as one line without code, URLs, mail addresses, HTML, Markdown and troff markup."""
    text = without_markup(text)
    ascii_chars = _ascii(text)
    for mark in MARKS:  # a regular expression for runs of them took a third of all the time
        if mark in ascii_chars:
            text = text.replace(mark, " ")
    return " ".join(text.split())


def without_markup(text: str) -> str:
    """The first part of it: `text` without what the patterns match; marks and lines stay."""
    ascii_chars = _ascii(text)
    for needles, pattern, replacement, in_a_line in _PATTERNS:
        for needle in needles:  # not any(): a generator costs more than the search
            if needle in ascii_chars:
                if in_a_line:
                    text = _by_line(pattern, replacement, needles[0], needles[-1], text)
                else:
                    text = pattern.sub(replacement, text)
                ascii_chars = _ascii(text)
                break
    return text


def _by_line(pattern: re.Pattern[str], replacement: str, needle: str, other: str, text: str) -> str:
    """The same as `pattern.sub(replacement, text)`, where one of the needles is in each match."""
    return "\n".join(
        [
            pattern.sub(replacement, line) if needle in line or other in line else line
            for line in text.split("\n")
        ]
    )


def _ascii(text: str) -> str:
    """The ASCII characters of a text: what needles are looked for in. A search for a character of
    one byte stops at every Han whose lower byte is the same: 140 of 220 ms for 44 MB of Chinese."""
    return text if text.isascii() else text.encode("ascii", "ignore").decode()
