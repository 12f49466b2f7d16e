"""The folded view of a text: what near duplicates are compared on, and nobody trains on.

What it must not see: case, full and half width, accents, traditional or simplified characters,
punctuation, how words are set apart, invisible characters. It is a function of each code point
alone, so that a compiled loop can read it from a table:

    NFKD, marks dropped, case folded, NFKD, marks dropped, traditional -> simplified;
    letters and digits stay, invisible format characters vanish, all else is a word break

Marks are Mn, Me and whatever has a combining class; Mc of class 0 (vowel signs of Indic scripts)
stay as letters, or Hindi words would fall apart. NFKD, where the design says NFKC, because NFC
composes across code points: a table could not do it. With the marks gone both agree, and since only
characters with a combining class are ever reordered, canonically equal texts have one folded view.
What it costs: か and が, or two Thai words that differ in a vowel mark, become equal.

A word is one Han character or kana, or a maximal run of other letters and digits: 用Python写 and
用 Python 写 have the same words.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata

import numpy as np
import numpy.typing as npt

from kernels.cache import kept_arrays
from kernels.han import SIMPLIFIED, TRADITIONAL_TO_SIMPLIFIED

# Letters that are words of their own, as ranges, since unicodedata knows no scripts: Han with the
# Suzhou numerals; kana with ー; the extensions of both.
ONE_WORD = (
    "々〆〇〡-〩㐀-䶿一-鿿\uf900-\ufaff"
    "ぁ-ゖゝ-ゟァ-ヺー-ヿㇰ-ㇿ"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
_WORD = re.compile(f"[{ONE_WORD}]|[^ {ONE_WORD}]+")

# Unassigned and private planes: all breaks, no need to ask.
_ASSIGNED = [range(0x40000), range(0xE0000, 0xE1000)]

# One entry of the table: the folded letter, with ONE if it is a word of its own; or BREAK; or
# NOTHING; or, below it, NOTHING - i, where the entries are the expansions[i - 1] from `i` on.
ONE = 1 << 24
BREAK = 0
NOTHING = -1


def fold_point(char: str) -> str:
    """Folded view of one code point: letters and digits, and a space for each word break."""
    for step in (str.casefold, str):
        decomposed = unicodedata.normalize("NFKD", char)
        char = step("".join(c for c in decomposed if not _is_mark(c)))
    return "".join(_letter_or_break(TRADITIONAL_TO_SIMPLIFIED.get(c, c)) for c in char)


def _is_mark(char: str) -> bool:
    return unicodedata.category(char) in ("Mn", "Me") or unicodedata.combining(char) != 0


def _is_folded(letter: str) -> bool:
    """Short for `fold_point(letter) == letter`: for nine of ten letters, a third of the time."""
    return (
        unicodedata.is_normalized("NFKD", letter)
        and unicodedata.combining(letter) == 0
        and letter.casefold() == letter
        and letter not in TRADITIONAL_TO_SIMPLIFIED
    )


def _letter_or_break(char: str) -> str:
    category = unicodedata.category(char)
    if category[0] in "LN" or category == "Mc":
        return char
    # Soft hyphens, joiners, direction marks and BOMs stand inside words; U+200B is a space.
    return "" if category == "Cf" and char != "\u200b" else " "


def fold(text: str) -> str:
    """The folded view as this module defines it: its words, separated by single spaces."""
    folded = text.translate({ord(char): fold_point(char) for char in set(text)})
    return " ".join(_WORD.findall(folded))


@functools.cache
def fold_table() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int]:
    """Table over code points, its expansions, and the most words that one byte of text can be."""
    table, expansions, words_per_byte = kept_arrays([__file__, SIMPLIFIED], _fold_table)
    return table, expansions, int(words_per_byte)


def _fold_table() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The same, worked out: 250 ms, 10 from the cache."""
    table = np.full(1 << 21, BREAK, np.int32)  # whatever four bytes can spell
    expansions: list[int] = []
    words_per_byte = 1
    one_word = re.compile(f"[{ONE_WORD}]")
    for code in itertools.chain(*_ASSIGNED):
        char = chr(code)
        category = unicodedata.category(char)
        if category in ("Cn", "Co", "Cs"):
            continue
        folded = char if category == "Lo" and _is_folded(char) else fold_point(char)
        entries = [
            BREAK if c == " " else ord(c) | (ONE if one_word.match(c) else 0) for c in folded
        ]
        if len(entries) == 1:
            table[code] = entries[0]
        elif not entries:
            table[code] = NOTHING
        else:
            table[code] = NOTHING - len(expansions) - 1
            expansions += [len(entries), *entries]
            num_bytes = len(char.encode())
            words_per_byte = max(words_per_byte, -(-len(_WORD.findall(folded)) // num_bytes))
    return table, np.array(expansions, np.int32), np.array(words_per_byte)
