"""Strings of JSON: escapes resolved, UTF-8 checked, characters counted, eight bytes at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernels.compile import inner_kernel, kernel
from kernels.hashing import Bytes

PADDING = 8  # bytes behind what is read or written, any: eight are taken at once

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


@kernel
def copy_string(data: Bytes, at: int, out: Bytes, to: int) -> tuple[int, int, int]:
    """Copy the string behind a quote: where it ends (-1: needs a look), the end of the copy, its
    characters. Writes up to PADDING bytes behind the end."""
    begin, continued = to, 0
    while True:
        # Eight bytes at once, as long as they are ASCII that means itself.
        while True:
            eight = load(data, np.uint64(at))
            store(out, np.uint64(to), eight)
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
                eight = load(data, np.uint64(at))
                store(out, np.uint64(to), eight)
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
def load(data: Bytes, at: np.uint64) -> np.uint64:
    """Eight bytes as a little-endian number: one load, as an unsigned place is not from the end."""
    value = np.uint64(0)
    for i in range(8):
        value |= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
    return value


@inner_kernel
def store(out: Bytes, to: np.uint64, value: np.uint64) -> None:
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
