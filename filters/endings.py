"""How a line ends: in the terminal punctuation of C4 and FineWeb, or in an ellipsis.

Their English marks are . ? ! and quotation marks; Chinese ones stand beside them, else every line
of Chinese is dropped (datatrove c4_filters.py, NeMo Curator constants.py). Lines are stripped, so
neither CRLF nor an ideographic space hides the mark, as it does in datatrove's FineWeb filter.
"""

from __future__ import annotations

import numpy as np

from filters.text import next_char
from kernels.compile import kernel
from kernels.hashing import Bytes

TERMINALS = ".?!\"'”’。．？！…；｡」』"
ELLIPSES = ("…", "...", "。。。")

_CODES = np.array([ord(char) for char in TERMINALS])
_STOP, _IDEOGRAPHIC_STOP, _ELLIPSIS = 0x2E, 0x3002, 0x2026


@kernel
def _char_before(data: Bytes, begin: int, end: int) -> tuple[int, int]:
    """The character that ends at byte `end`, and where it begins; 0 at `begin`."""
    if end == begin:
        return 0, begin
    at = end - 1
    while data[at] & 0xC0 == 0x80:
        at -= 1
    return next_char(data, at)[0], at


@kernel
def ends_terminally(data: Bytes, begin: int, end: int) -> bool:
    """Is the last character of `data[begin:end]` one of TERMINALS?"""
    code, _ = _char_before(data, begin, end)
    found = False
    for terminal in _CODES:
        found |= code == terminal
    return found


@kernel
def ends_in_ellipsis(data: Bytes, begin: int, end: int) -> bool:
    """Does `data[begin:end]` end in one of ELLIPSES?"""
    code, at = _char_before(data, begin, end)
    if code in (_STOP, _IDEOGRAPHIC_STOP):
        second, at = _char_before(data, begin, at)
        return second == code and _char_before(data, begin, at)[0] == code
    return code == _ELLIPSIS
