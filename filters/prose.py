"""What a language model should look at: prose, without code, addresses and markup.

For a measurement's own view only; nothing here changes a document. The model of filters/language.py
took 104 of 936 Chinese Markdown pages and 86 of 141 Chinese man pages for other languages because
their heads are links and macros (measured for this project's design).
"""

from __future__ import annotations

import re

# In this order; each match becomes one space, or its first group where it has one.
_MARKUP = (
    r"(?s)\A---\n.*?\n---\n",  # front matter
    r"(?ms)^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)()",  # fenced code, also cut off
    r"(?is)<!--.*?(?:-->|\Z)",
    r"(?is)<(script|style|pre|code|svg)\b.*?(?:</\1>|\Z)()",
    r"</?[A-Za-z][^<>]{0,2000}>",  # HTML tags
    r"&(?:[A-Za-z]{2,8}|#\w{1,7});",
    r"(?s)\{\{.{0,300}?\}\}|\{%.{0,300}?%\}",  # templates
    r"``[^\n]{1,300}?``|`[^`\n]{1,300}`",
    r"\$\$[^$]{1,2000}\$\$|\$[^$\n]{1,200}\$",  # TeX
    r"!?\[([^\[\]\n]{0,500})\](?:\([^()\n]{0,1000}(?:\([^()\n]{0,500}\)[^()\n]{0,500})?\)|\[[^\]\n]*\])",
    r"(?m)^[ \t]*\[[^\]\n]+\]:.*$",  # link definitions
    r"(?:[A-Za-z][A-Za-z0-9+.-]{1,9}://|www\.)[!-~]+",
    r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,63}",
    r'(?m)^[.\'](?:\\"|TH|so|if|ie|el|de|ds|nr|tr|hy|ad|nh)\b.*$',  # troff: comments and settings
    r"(?m)^[.'][A-Za-z]{1,3}\b",  # troff: macros whose arguments are text
    r"\\f(?:[A-Z]|\([A-Z]{2}|\[[A-Z]*\])|\\s[+-]?\d|\\\([a-z]{2}|\\[&|^/,]",  # troff: in the line
    r"(?<![!-~])[!-~]*[\w)][_/\\=][!-~]+",  # paths, identifiers, options
    r"[#*_~|>`\\=+-]{1,}",  # headers, emphasis, tables, rules
)
_PATTERNS = tuple(re.compile(pattern) for pattern in _MARKUP)
_TROFF = re.compile(r"(?m)^[.'][A-Z]{2}\b")


def prose(text: str) -> str:
    """`text` as one line without code, URLs, mail addresses, HTML, Markdown and troff markup."""
    for pattern in _PATTERNS:
        text = pattern.sub(_content, text)
    return " ".join(text.split())


def _content(match: re.Match[str]) -> str:
    content = match[match.lastindex] if match.lastindex else " "
    return content or " "
