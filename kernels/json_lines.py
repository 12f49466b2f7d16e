"""Lines of JSON to columns, in one pass over the bytes: of a block of lines some named fields.

What this pass is not sure of it leaves to a parser (LOOK): it takes no line that orjson refuses,
and what it takes of a line is what orjson makes of it. It knows objects whose values are strings,
numbers, true, false and null; a value inside another one, an exponent, a field that comes twice, a
lone surrogate and anything that is no JSON or no UTF-8 get that look. 0.9 GB/s of short lines to
2.8 of long ones, where orjson with a Python object for each value does 0.2 to 0.6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.compile import inner_kernel, kernel
from kernels.hashing import Bytes
from kernels.json_strings import PADDING, copy_string, load, store

Flags = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]

ROW, BLANK, LOOK = 0, 1, 2  # what a line is: an object whose first name is a string, nothing
ABSENT, STRING, LITERAL = 0, 1, 2  # what a value is: null too, text, a number or true or false
MAX_NAMES = 64  # that are looked for at once: a bit for each
TEXTS_AT = 2  # where the first text begins: some kernels look two bytes back

_MAX_DIGITS = 18  # of a number that 64 bits hold, whatever the digits


class Lines(NamedTuple):
    """Lines of a block, and the values of the first name (`text`) and of the others."""

    kinds: Flags  # ROW, BLANK, LOOK
    begins: Positions  # of bytes in the block
    ends: Positions  # without the line end
    texts: Bytes  # of all rows, one after another
    text_begins: Positions
    text_ends: Positions
    text_chars: Positions
    others: Bytes
    other_kinds: npt.NDArray[np.uint8]  # [line, name]: ABSENT, STRING, LITERAL
    other_begins: npt.NDArray[np.int64]  # [line, name]: of bytes in `others`
    other_ends: npt.NDArray[np.int64]


@kernel
def scan(data: Bytes, end: int, names: Bytes, name_ends: Positions) -> Lines:
    """The lines of `data[:end]`, which ends with a line end, and PADDING bytes are behind it.

    Args:
        names: of the fields that are wanted, one after another, distinct; the first is the text.
    """
    num_lines, num_names = 0, len(name_ends)
    for at in range(end):
        num_lines += data[at] == 10
    lines = Lines(
        np.empty(num_lines, np.uint8),
        np.empty(num_lines, np.int64),
        np.empty(num_lines, np.int64),
        np.zeros(TEXTS_AT + end + PADDING, np.uint8),
        np.empty(num_lines, np.int64),
        np.empty(num_lines, np.int64),
        np.zeros(num_lines, np.int64),
        np.empty(end + PADDING, np.uint8),
        np.zeros((num_lines, num_names), np.uint8),
        np.zeros((num_lines, num_names), np.int64),
        np.zeros((num_lines, num_names), np.int64),
    )
    begin, text_end, other_end = 0, TEXTS_AT, 0
    for line in range(num_lines):
        lines.begins[line] = begin
        lines.text_begins[line] = text_end
        kind, at, text_to, other_to = _line(
            data, begin, names, name_ends, lines, line, text_end, other_end
        )
        if kind == LOOK:
            while data[at] != 10:
                at += 1
        else:
            text_end, other_end = text_to, other_to
        lines.kinds[line] = kind
        lines.ends[line] = at
        lines.text_ends[line] = text_end
        begin = at + 1
    return lines


@kernel
def _line(
    data: Bytes,
    at: int,
    names: Bytes,
    name_ends: Positions,
    lines: Lines,
    line: int,
    text_to: int,
    other_to: int,
) -> tuple[int, int, int, int]:
    """What the line is, a place in it (its end, unless it needs a look), ends of what was copied.

    No value holds a line end, so no step goes beyond the end of the line.
    """
    num_names = len(name_ends)
    seen = np.uint64(0)
    at = _space(data, at)
    if data[at] == 10:
        return BLANK, at, text_to, other_to
    if data[at] != 0x7B:  # {
        return LOOK, at, text_to, other_to
    while True:
        at = _space(data, at + 1)
        if data[at] != 0x22:  # also {}, which has no text
            return LOOK, at, text_to, other_to
        key = other_to
        after, key_end, _ = copy_string(data, at + 1, lines.others, key)
        if after < 0:
            return LOOK, at, text_to, other_to
        name = _name(lines.others, key, key_end, names, name_ends)
        at = _space(data, after)
        if data[at] != 0x3A:  # :
            return LOOK, at, text_to, other_to
        at = _space(data, at + 1)
        if name < num_names:
            bit = np.uint64(1) << np.uint64(name)
            if seen & bit:
                return LOOK, at, text_to, other_to
            seen |= bit
        if data[at] == 0x22:
            if name == 0:
                after, text_to, lines.text_chars[line] = copy_string(
                    data, at + 1, lines.texts, text_to
                )
            else:
                after, to, _ = copy_string(data, at + 1, lines.others, other_to)
                if name < num_names and after >= 0:
                    lines.other_kinds[line, name] = STRING
                    lines.other_begins[line, name] = other_to
                    lines.other_ends[line, name] = to
                    other_to = to
        elif name == 0:
            return LOOK, at, text_to, other_to
        else:
            after, exact = _literal(data, at)
            if name < num_names and after >= 0 and data[at] != 0x6E:  # null
                if not exact:
                    return LOOK, at, text_to, other_to
                lines.other_kinds[line, name] = LITERAL
                lines.other_begins[line, name] = other_to
                for i in range(at, after):
                    lines.others[other_to] = data[i]
                    other_to += 1
                lines.other_ends[line, name] = other_to
        if after < 0:
            return LOOK, at, text_to, other_to
        at = _space(data, after)
        if data[at] == 0x2C:  # ,
            continue
        if data[at] != 0x7D:  # }
            return LOOK, at, text_to, other_to
        at = _space(data, at + 1)
        is_row = data[at] == 10 and seen & np.uint64(1) != 0
        return ROW if is_row else LOOK, at, text_to, other_to


@inner_kernel
def _space(data: Bytes, at: int) -> int:
    while data[at] == 0x20 or data[at] == 0x09 or data[at] == 0x0D:
        at += 1
    return at


@inner_kernel
def _name(data: Bytes, begin: int, end: int, names: Bytes, name_ends: Positions) -> int:
    """Which of the names it is; their number for none."""
    first = 0
    for name in range(len(name_ends)):
        if name_ends[name] - first == end - begin:
            same = True
            for i in range(end - begin):
                same &= data[begin + i] == names[first + i]
            if same:
                return name
        first = name_ends[name]
    return len(name_ends)


@kernel
def _literal(data: Bytes, at: int) -> tuple[int, bool]:
    """Where a number, true, false or null ends, -1 where it needs a look; is it an integer (but not
    -0), true, false or null, which Python writes as it reads it?"""
    for word in (b"true", b"false", b"null"):
        if data[at] == word[0]:
            for i in range(1, len(word)):
                if data[at + i] != word[i]:
                    return -1, False
            return at + len(word), True
    minus = data[at] == 0x2D
    at += minus
    first = at
    while 0x30 <= data[at] <= 0x39:
        at += 1
    digits = at - first
    zero = data[first] == 0x30
    if digits == 0 or digits > _MAX_DIGITS or (zero and digits > 1):
        return -1, False
    if data[at] != 0x2E:  # .
        return (-1, False) if data[at] | 0x20 == 0x65 else (at, not (minus and zero))  # e
    first = at + 1
    at = first
    while 0x30 <= data[at] <= 0x39:
        at += 1
    if at == first or at - first > _MAX_DIGITS or data[at] | 0x20 == 0x65:
        return -1, False
    return at, False


@kernel
def column(
    data: Bytes, rows: Positions, begins: Positions, ends: Positions
) -> tuple[npt.NDArray[np.int32], Bytes]:
    """Offsets and bytes of a string column: `data[begins[r]:ends[r]]` for each of the rows. Both
    arrays of bytes have PADDING behind the last of them."""
    offsets = np.zeros(len(rows) + 1, np.int32)
    for i in range(len(rows)):
        offsets[i + 1] = offsets[i] + ends[rows[i]] - begins[rows[i]]
    out = np.empty(offsets[len(rows)] + PADDING, np.uint8)
    for i in range(len(rows)):
        at, end, to = begins[rows[i]], ends[rows[i]], np.int64(offsets[i])
        while at < end:
            store(out, np.uint64(to), load(data, np.uint64(at)))
            at += 8
            to += 8
    return offsets, out
