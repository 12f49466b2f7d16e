"""A report as Markdown and as one HTML page that needs nothing else: no script, no network.

A report is a list of sections; both renderings show the same sections, figures are HTML only.
All text is escaped: names, predicates and questions come from settings files.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

TEMPLATE = Path(__file__).with_name("report.html")


@dataclass(frozen=True)
class Table:
    """`numeric` columns (by index) are aligned right; `strong` rows stand out."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    strong: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Section:
    title: str
    text: tuple[str, ...] = ()  # paragraphs, plain text
    figure: str = ""  # HTML, trusted: made by charts.py
    table: Table | None = None
    code: str = ""  # shown as it stands
    after: tuple[str, ...] = ()  # paragraphs below figure and table


@dataclass(frozen=True)
class Report:
    question: str
    verdicts: tuple[tuple[str, str], ...]  # (better, worse or undecided; the sentence)
    sections: tuple[Section, ...]


def html(report: Report) -> str:
    """The page, one string."""
    verdicts = "".join(
        f'<p class="verdict {kind}">{escape(sentence)}</p>' for kind, sentence in report.verdicts
    )
    return string.Template(TEMPLATE.read_text("utf-8")).substitute(
        question=escape(report.question),
        verdicts=verdicts,
        sections="\n".join(_html_section(section) for section in report.sections),
    )


def _html_section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    parts += [f"<p>{escape(text)}</p>" for text in section.text]
    if section.figure:
        parts.append(f"<figure>{section.figure}</figure>")
    if section.table:
        parts.append(_html_table(section.table))
    if section.code:
        parts.append(f"<pre>{escape(section.code)}</pre>")
    parts += [f"<p>{escape(text)}</p>" for text in section.after]
    return f"<section>{''.join(parts)}</section>"


def _html_table(table: Table) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=num' * (index in table.numeric)}>{escape(text)}</{tag}>"
            for index, text in enumerate(row)
        )

    body = "".join(
        f"<tr{' class=strong' * (index in table.strong)}>{cells('td', row)}</tr>"
        for index, row in enumerate(table.rows)
    )
    head = cells("th", table.headers)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def markdown(report: Report) -> str:
    """The same, for terminals, pull requests and chats."""
    parts = [f"# {_plain(report.question)}"]
    parts += [f"**{_plain(sentence)}**" for _, sentence in report.verdicts]
    for section in report.sections:
        parts.append(f"## {_plain(section.title)}")
        parts += [_plain(text) for text in section.text]
        if section.table:
            parts.append(_markdown_table(section.table))
        if section.code:
            parts.append(f"```\n{section.code}\n```")
        parts += [_plain(text) for text in section.after]
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    rows = [tuple(_plain(text) for text in row) for row in (table.headers, *table.rows)]
    widths = [max(3, *(_width(row[i]) for row in rows)) for i in range(len(table.headers))]

    def line(row: Sequence[str]) -> str:
        cells = []
        for index, text in enumerate(row):
            space = " " * (widths[index] - _width(text))
            cells.append(space + text if index in table.numeric else text + space)
        return f"| {' | '.join(cells)} |"

    rule = [
        "-" * (width - 1) + ":" if index in table.numeric else "-" * width
        for index, width in enumerate(widths)
    ]
    return "\n".join([line(rows[0]), f"| {' | '.join(rule)} |", *map(line, rows[1:])])


def _width(text: str) -> int:
    """Columns on a terminal: a Han character takes two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


_MARKUP = str.maketrans({c: f"&#{ord(c)};" for c in "<>|`*["} | {"&": "&amp;", "\n": " "})


def _plain(text: str) -> str:
    """Text that Markdown shows as it stands."""
    return text.translate(_MARKUP)
