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

Flags = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]

ROW, BLANK, LOOK = 0, 1, 2  # what a line is: an object whose first name is a string, nothing
ABSENT, STRING, LITERAL = 0, 1, 2  # what a value is: null too, text, a number or true or false
PADDING = 8  # bytes behind a block, any: eight are read at once
MAX_NAMES = 64  # that are looked for at once: a bit for each
TEXTS_AT = 2  # where the first text begins: some kernels look two bytes back

_MAX_DIGITS = 18  # of a number that 64 bits hold, whatever the digits
_ONES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_SPACES = np.uint64(0x2020202020202020)
_TWO_OF_THREE = np.uint64(0xC0C0F0C0C0F0)
_TWO_LEADS = np.uint64(0x8080E08080E0)


def _escapes() -> Bytes:
    table = np.zeros(256, np.uint8)
    for letter, char in zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True):
        table[ord(letter)] = ord(char)
    return table


def _hex_digits() -> npt.NDArray[np.int32]:
    table = np.full(256, -1, np.int32)
    for digit in "0123456789abcdefABCDEF":
        table[ord(digit)] = int(digit, 16)
    return table


_ESCAPES = _escapes()  # what a letter behind a backslash means; 0: something else
_HEX = _hex_digits()


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
        after, key_end, _ = _string(data, at + 1, lines.others, key)
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
                after, text_to, lines.text_chars[line] = _string(data, at + 1, lines.texts, text_to)
            else:
                after, to, _ = _string(data, at + 1, lines.others, other_to)
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
def _string(data: Bytes, at: int, out: Bytes, to: int) -> tuple[int, int, int]:
    """Copy the string behind a quote: where it ends (-1: needs a look), the end of the copy, its
    characters. Writes up to PADDING bytes behind the end."""
    begin, continued = to, 0
    while True:
        # Eight bytes at once, as long as they are ASCII that means itself.
        while True:
            eight = _load(data, np.uint64(at))
            _store(out, np.uint64(to), eight)
            quotes, slashes = eight ^ _QUOTES, eight ^ _BACKSLASHES
            special = ((quotes - _ONES) | (slashes - _ONES) | (eight - _SPACES) | eight) & _TOPS
            if special:
                break
            at += 8
            to += 8
        # The lowest mark is right: a borrow makes wrong ones above it only.
        low = ((special & (~special + np.uint64(1))) >> np.uint64(7)) - np.uint64(1)
        plain = int(((low & _ONES) * _ONES) >> np.uint64(56))
        at += plain
        to += plain
        byte = data[at]
        if byte >= 0x80:
            # Two characters of three bytes at once, then whatever they are.
            while True:
                eight = _load(data, np.uint64(at))
                _store(out, np.uint64(to), eight)
                if eight & _TWO_OF_THREE == _TWO_LEADS and _is_usual(eight):
                    at += 6
                    to += 6
                    continued += 4
                    continue
                if data[at] < 0x80:
                    break
                size = _size(data, at)
                if size == 0:
                    return -1, to, 0
                at += size
                to += size
                continued += size - 1
        elif byte == 0x22:
            return at + 1, to, to - begin - continued
        elif byte < 0x20:
            return -1, to, 0
        elif data[at + 1] != 0x75:  # a backslash, and no u
            char = _ESCAPES[data[at + 1]]
            if char == 0:
                return -1, to, 0
            out[to] = char
            at, to = at + 2, to + 1
        else:
            code = _hex4(data, at + 2)
            at += 6
            if 0xD800 <= code < 0xDC00 and data[at] == 0x5C and data[at + 1] == 0x75:
                second = _hex4(data, at + 2)
                if not 0xDC00 <= second < 0xE000:
                    return -1, to, 0
                code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00)
                at += 6
            elif code < 0 or 0xD800 <= code < 0xE000:
                return -1, to, 0
            size = _encode(code, out, to)
            to += size
            continued += size - 1


@inner_kernel
def _load(data: Bytes, at: np.uint64) -> np.uint64:
    """Eight bytes as a little-endian number: one load, as an unsigned place is not from the end."""
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
    return value


@inner_kernel
def _store(out: Bytes, to: np.uint64, value: np.uint64) -> None:
    for i in range(8):
        out[to + np.uint64(i)] = np.uint8((value >> np.uint64(8 * i)) & np.uint64(0xFF))


@inner_kernel
def _is_usual(eight: np.uint64) -> bool:
    """Of two characters of three bytes: none begins with E0 or ED, which forbid some successors."""
    first, second = eight & np.uint64(0xF), eight >> np.uint64(24) & np.uint64(0xF)
    e0, ed = np.uint64(0), np.uint64(0xD)
    return bool(first != e0 and first != ed and second != e0 and second != ed)


@inner_kernel
def _size(data: Bytes, at: int) -> int:
    """Bytes of a character above ASCII; 0 for what is no UTF-8 (Unicode 17, table 3-7)."""
    a, b, c = data[at], data[at + 1], data[at + 2]
    if 0xE1 <= a <= 0xEC:  # nearly all of Chinese
        return 3 if (b & 0xC0) == 0x80 and (c & 0xC0) == 0x80 else 0
    if 0xC2 <= a <= 0xDF:
        return 2 if (b & 0xC0) == 0x80 else 0
    if (b & 0xC0) != 0x80 or (c & 0xC0) != 0x80:
        return 0
    if a == 0xE0:
        return 3 if b >= 0xA0 else 0
    if a == 0xED:
        return 3 if b < 0xA0 else 0
    if 0xEE <= a <= 0xEF:
        return 3
    if (data[at + 3] & 0xC0) != 0x80:
        return 0
    if a == 0xF0:
        return 4 if b >= 0x90 else 0
    if 0xF1 <= a <= 0xF3:
        return 4
    return 4 if a == 0xF4 and b < 0x90 else 0


@kernel
def _hex4(data: Bytes, at: int) -> int:
    """The number of four hex digits; negative where one is none."""
    code = 0
    for i in range(4):
        digit = _HEX[data[at + i]]
        if digit < 0:
            return -1
        code = code * 16 + digit
    return code


@kernel
def _encode(code: int, out: Bytes, to: int) -> int:
    """Write a character as UTF-8; how many bytes."""
    if code < 0x80:
        out[to] = code
        return 1
    if code < 0x800:
        out[to], out[to + 1] = 0xC0 | code >> 6, 0x80 | code & 0x3F
        return 2
    if code < 0x10000:
        out[to], out[to + 1] = 0xE0 | code >> 12, 0x80 | code >> 6 & 0x3F
        out[to + 2] = 0x80 | code & 0x3F
        return 3
    out[to], out[to + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 0x3F
    out[to + 2], out[to + 3] = 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F
    return 4


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
            _store(out, np.uint64(to), _load(data, np.uint64(at)))
            at += 8
            to += 8
    return offsets, out
