"""What a learned model sees of a text: tokens between spaces, folded and cut. Part of the model.

    raw         the text as it stands: white space parts. Chinese has none, so a sentence is one
                token and nothing is learnt: accuracy .53 on reviews, where always saying the larger
                class is right in .53
    jieba       the text as jieba cuts it (filters/segmenters.py), twenty times as slow
    characters  each Han character and kana apart, runs of letters, digits and marks together, any
                other character by itself: "他用Python3写。" is 他 用 Python3 写 。

Folding brings one form for full and half width, capitals, traditional and simplified characters.
The cut counts characters of the text, before anything else. `spread` is the definition, the kernel
equal to it (tests/filters/test_spread.py).
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters import text as units
from filters.names import Offsets
from filters.segmenters import cutter
from filters.text import CLASSES, MARK, SINGLE, SPACE, WORD, Bits, next_char
from kernels.arrow import string_buffers
from kernels.cache import kept_arrays
from kernels.compile import inner_kernel, kernel
from kernels.han import SIMPLIFIED, TRADITIONAL_TO_SIMPLIFIED
from kernels.hashing import Bytes

UNITS = ("raw", "characters", "jieba")
Codes = npt.NDArray[np.uint32]


class View(NamedTuple):
    units: str = "characters"  # of UNITS
    fold: bool = True
    max_chars: int = 4_000  # of a text, from its beginning


def fold_char(char: str) -> str:
    """One character for one: usual width, lower case, simplified."""
    width, _, usual = unicodedata.decomposition(char).partition(" ")
    if width in ("<wide>", "<narrow>"):
        char = chr(int(usual, 16))
    lower = char.lower()
    char = lower if len(lower) == 1 else char
    return TRADITIONAL_TO_SIMPLIFIED.get(char, char)


def _folds() -> tuple[Codes]:
    """Code point -> folded code point."""
    codes = np.arange(0x110000, dtype=np.uint32)
    for code, char in enumerate(units.CHARS.tolist()):
        if char and code:
            codes[code] = ord(fold_char(char))
    return (codes,)


(FOLDS,) = kept_arrays([__file__, units.__file__, SIMPLIFIED], _folds)
UNFOLDED = np.arange(0x110000, dtype=np.uint32)


def spread(text: str, view: View) -> str:
    """The definition: the tokens of one text, a space before each."""
    text = text[: view.max_chars]
    if view.fold:
        text = "".join(map(fold_char, text))
    if view.units == "jieba":
        text = " ".join(cutter("jieba")(text))
    found = []
    run = False  # the last token may go on
    for char in text:
        bits = int(CLASSES[ord(char)])
        if bits & SPACE:
            run = False
            continue
        goes_on = view.units != "characters" or (bits & (WORD | MARK) and not bits & SINGLE)
        found.append(char if run and goes_on else f" {char}")
        run = bool(goes_on)
    return "".join(found)


def spread_all(data: Bytes, offsets: Offsets, view: View) -> tuple[Bytes, Offsets]:
    """`spread` of every text: UTF-8 and offsets as kernels/arrow.py has them."""
    if view.units == "jieba":
        texts = [
            data[offsets[i] : offsets[i + 1]].tobytes().decode() for i in range(len(offsets) - 1)
        ]
        return string_buffers(pa.array([spread(text, view) for text in texts], pa.string()))
    table = FOLDS if view.fold else UNFOLDED
    apart = view.units == "characters"
    filled: tuple[Bytes, Offsets] = _spread(data, offsets, CLASSES, table, apart, view.max_chars)
    return filled


@kernel
def _spread(
    data: Bytes, offsets: Offsets, classes: Bits, folds: Codes, apart: bool, max_chars: int
) -> tuple[Bytes, Offsets]:
    # A byte of ASCII becomes two; of two to four bytes at most a space and one byte more.
    out = np.empty(2 * (offsets[-1] - offsets[0]), np.uint8)
    ends = np.zeros(len(offsets), np.int64)
    count = 0
    for text in range(len(offsets) - 1):
        at, end = offsets[text], offsets[text + 1]
        chars = 0
        run = False
        while at < end and chars < max_chars:
            code, at = next_char(data, at)
            chars += 1
            code = int(folds[code])
            bits = classes[code]
            if bits & SPACE:
                run = False
                continue
            goes_on = (not apart) or (bits & (WORD | MARK) != 0 and bits & SINGLE == 0)
            if not (run and goes_on):
                out[count] = 32
                count += 1
            run = goes_on
            count = put_char(out, count, code)
        ends[text + 1] = count
    return out[:count], ends


@inner_kernel
def put_char(out: Bytes, at: int, code: int) -> int:
    """Write a code point as UTF-8; returns the place after it."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | code >> 6
        out[at + 1] = 0x80 | code & 0x3F
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | code >> 12
        out[at + 1] = 0x80 | code >> 6 & 0x3F
        out[at + 2] = 0x80 | code & 0x3F
        return at + 3
    out[at] = 0xF0 | code >> 18
    out[at + 1] = 0x80 | code >> 12 & 0x3F
    out[at + 2] = 0x80 | code >> 6 & 0x3F
    out[at + 3] = 0x80 | code & 0x3F
    return at + 4
