"""The folded view of single characters, for finding phrases in text that hides them.

A phrase is looked for as a row of symbols, one a character, and the text is read as such a row, on
the fly: case, full width, accents, circled and squared letters and digits, compatibility forms and
traditional characters are folded away. What is no letter may stand between Han characters (微❤信,
加 微 信); what cannot be seen (zero-width, joiners, variation selectors) may stand anywhere.

A character that stands for several (ﬁ, ㍿) is itself, but for one letter in brackets: ⒜ is a.
"""

from __future__ import annotations

import functools
import unicodedata

import numpy as np
import numpy.typing as npt

from filters import text as units
from kernels.cache import kept_arrays
from kernels.han import SIMPLIFIED, TRADITIONAL_TO_SIMPLIFIED

# A symbol: the folded character's code point in the lower 21 bits, and what it is.
VALUE = (1 << 21) - 1
LETTER = 1 << 21  # of a script that writes words apart
DIGIT = 1 << 22
HAN = 1 << 23  # Han or kana: a word by itself
GAP = 1 << 24  # may stand between Han characters of a phrase
BLANK = 1 << 25  # white space; all of it is one symbol
NOTHING = 1 << 26  # cannot be seen

# No symbol of Unicode, but written between Han characters to hide a word. Full stops of Latin, not
# 。 and no comma: 性，交通 is two clauses.
_GAP_MARKS = ".*-_|/\\~·•‧∙・^#&@%"
_LINE_ENDS = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"  # part clauses as a comma does

# Letters and digits that NFKD leaves alone: in black circles and squares, regional indicators.
_DRAWN = {
    **{0x1F150 + i: 97 + i for i in range(26)},
    **{0x1F170 + i: 97 + i for i in range(26)},
    **{0x1F1E6 + i: 97 + i for i in range(26)},
    **{first + i: 49 + i for first in (0x2776, 0x2780, 0x278A) for i in range(9)},
    ord("➕"): ord("+"),
    ord("’"): ord("'"),
}

Symbols = npt.NDArray[np.uint32]


def symbol(char: str) -> int:
    """The symbol of a character."""
    bits = int(units.CLASSES[ord(char)])
    if bits & units.SPACE:
        return ord(" ") | BLANK | (0 if char in _LINE_ENDS else GAP)
    if bits & units.MARK or unicodedata.category(char) == "Cf":
        return NOTHING
    folded = _folded(char)
    bits = int(units.CLASSES[ord(folded)])
    if bits & units.SINGLE:
        return ord(folded) | HAN
    if bits & units.LETTER:
        return ord(folded) | LETTER
    if bits & units.WORD:
        return ord(folded) | DIGIT
    gap = folded in _GAP_MARKS or unicodedata.category(folded)[0] == "S"
    return ord(folded) | (GAP if gap else 0)


def _folded(char: str) -> str:
    if ord(char) in _DRAWN:
        return chr(_DRAWN[ord(char)])
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    base = [part for part in parts if not unicodedata.combining(part)]
    if len(base) > 1:
        base = [part for part in base if part.isalnum()]
    folded = base[0] if len(base) == 1 else char
    return TRADITIONAL_TO_SIMPLIFIED.get(folded, folded)


@functools.cache
def symbols() -> Symbols:
    """The symbol of each of the 0x110000 code points."""
    (table,) = kept_arrays([__file__, units.__file__, SIMPLIFIED], _symbols)
    return table


def _symbols() -> tuple[Symbols]:
    """The same, worked out: 400 ms, 3 from the cache."""
    table = np.arange(0x110000, dtype=np.uint32)
    for code in (*range(0xD800), *range(0xE000, 0x32000), *range(0xE0000, 0xE01F0)):
        table[code] = symbol(chr(code))
    return (table,)
