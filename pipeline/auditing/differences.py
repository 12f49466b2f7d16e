"""Two texts side by side: where they differ, with a few words around it."""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from itertools import groupby, zip_longest

MOST_WORDS = 2_000  # of a text that are compared: a second where little is equal
AROUND = 8  # words shown beside a difference; what is equal between two is left out

# A Han character or kana, a run of other letters and digits, of spaces, or one of the rest.
_WORDS = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿]|[^\W぀-ヿ㐀-䶿一-鿿豈-﫿]+|\s+|[^\w\s]")

Piece = tuple[str, bool]  # text, differs from the other side
Place = tuple[list[Piece], list[Piece]]


def differences(left: str, right: str) -> list[Place]:
    """The places in which two texts differ, both sides of each; none where they are equal."""
    a, b = (_WORDS.findall(text)[:MOST_WORDS] for text in (left, right))
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    found: list[Place] = []
    for group in matcher.get_grouped_opcodes(AROUND):
        sides: Place = ([], [])
        for what, a_begin, a_end, b_begin, b_end in group:
            pieces = "".join(a[a_begin:a_end]), "".join(b[b_begin:b_end])
            for side, piece in zip(sides, pieces, strict=True):
                if piece:
                    side.append((piece, what != "equal"))
        found.append(sides)
    return found


def columns(place: Place, width: int, colour: bool) -> list[str]:
    """Lines of a terminal with both sides, each `width` cells wide. What differs stands in reverse,
    or in brackets where there is no colour."""
    sides = [_lines(side, width, colour) for side in place]
    return [
        f"{left[0]}{' ' * (width - left[1])} | {right[0]}".rstrip()
        for left, right in zip_longest(*sides, fillvalue=("", 0))
    ]


def _lines(pieces: list[Piece], width: int, colour: bool) -> list[tuple[str, int]]:
    """Each with its width in cells."""
    cells: list[tuple[str, bool, int]] = []
    for text, differs in pieces:
        bracketed = f"[{text}]" if differs and not colour else text
        for char in bracketed.replace("\n", "↵").replace("\t", " "):
            cells.append((char if char.isprintable() else "�", differs, _width(char)))
    lines: list[tuple[str, int]] = []
    while cells:
        size = used = 0
        while size < len(cells) and used + cells[size][2] <= width:
            used += cells[size][2]
            size += 1
        lines.append((_coloured(cells[:size], colour), used))
        cells = cells[size:]
    return lines


def _width(char: str) -> int:
    """Cells of a character in a terminal."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _coloured(cells: list[tuple[str, bool, int]], colour: bool) -> str:
    runs = groupby(cells, key=lambda cell: cell[1])
    texts = [(differs, "".join(cell[0] for cell in run)) for differs, run in runs]
    return "".join(f"\033[7m{t}\033[0m" if differs and colour else t for differs, t in texts)
