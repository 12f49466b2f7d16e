"""Which lines hold a key of which rules of filters/chrome.py: a first look at every line.

Eight bytes at a time tell where words and characters begin; there a hash of the next few bytes says
whether some key may stand. So a line costs its length, whatever the number of keys.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.chrome import FOLDED, RULES
from filters.names import Positions
from filters.pieces import Pieces
from filters.text import next_char
from kernels.compile import inner_kernel, kernel
from kernels.han import TRADITIONAL_TO_SIMPLIFIED
from kernels.hashing import HASH_PRIME, Bytes, alphanumeric, first_byte, fold, lead_bytes, load8

Codes = npt.NDArray[np.uint32]
Masks = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]

_SLOT_BITS = 15
_TWO, _FOUR, _SIX = (np.uint64((1 << 8 * n) - 1) for n in (2, 4, 6))  # bytes of a number
_BY_FREQUENCY = "etaoin srhldcumfpgwybv"  # of English; other characters are rarer


class Keys(NamedTuple):
    """Every key, and where to look for it: by hash of some of its bytes. A key stands once for
    each way to write those."""

    bits: Bytes  # a bit by hash: some key has such bytes
    starts: Positions  # by hash: its first entry in the arrays below, and the end of them
    rules: Positions  # by entry: number of the rule
    backs: Positions  # characters of the key before those bytes
    codes: Codes  # [entry, n]: its characters, 0 after the last
    allowed: Positions  # by characters of a line: the rules that may take it, one bit each


def rules_by_line(data: Bytes, lines: Pieces, skipped: Flags) -> Masks:
    """Of each line: the rules that may take it by its length, and of which a key stands in it, one
    bit each; none in texts that are `skipped`."""
    return _rules_by_line(data, lines, skipped, _keys(), FOLDED)


def _grams(key: str) -> Iterator[tuple[bytes, int]]:
    """What of a key is looked for, in each way to write it, and what stands before it: the rarest
    four bytes that begin a word if it begins in ASCII, its first two Han characters if not."""
    if key[0].isascii():
        words = [at for at in range(len(key)) if key[at].isalnum() and not key[:at][-1:].isalnum()]
        best = min(words, key=lambda at: (len(key) - at < 4, _common(key[at : at + 4]), at))
        yield key[best:].encode()[:4], best
    elif ord(key[0]) < 0x800:
        yield key.encode()[:2], 0
    else:
        for pair in itertools.product(*(_WRITTEN.get(char, char) for char in key[:2])):
            yield "".join(pair).encode(), 0


def _common(letters: str) -> int:
    return -sum(_BY_FREQUENCY.find(letter) % 99 for letter in letters)


def _written() -> dict[str, str]:
    """A simplified character and the traditional ones that it stands for."""
    found: dict[str, str] = {}
    for traditional, simplified in TRADITIONAL_TO_SIMPLIFIED.items():
        found[simplified] = found.get(simplified, simplified) + traditional
    return found


_WRITTEN = _written()
_LONGEST = max(rule.longest for rule in RULES.values())


def _rules_of(chars: int) -> int:
    return sum(1 << n for n, rule in enumerate(RULES.values()) if chars <= rule.longest)


@functools.cache
def _keys() -> Keys:
    entries = sorted(
        (_slot(np.uint64(int.from_bytes(gram, "little"))), number, back, key)
        for number, rule in enumerate(RULES.values())
        for key in rule.keys
        for gram, back in _grams(key)
    )
    slots = np.array([slot for slot, _, _, _ in entries])
    bits = np.zeros((1 << _SLOT_BITS) // 8, np.uint8)
    np.bitwise_or.at(bits, slots >> 3, (1 << (slots & 7)).astype(np.uint8))
    codes = np.zeros((len(entries), max(len(key) for *_, key in entries) + 1), np.uint32)
    for entry, (*_, key) in enumerate(entries):
        codes[entry, : len(key)] = [ord(char) for char in key]
    return Keys(
        bits,
        np.searchsorted(slots, np.arange((1 << _SLOT_BITS) + 1)).astype(np.int32),
        np.array([number for _, number, _, _ in entries], np.int32),
        np.array([back for _, _, back, _ in entries], np.int32),
        codes,
        np.array([_rules_of(chars) for chars in range(_LONGEST + 2)], np.int32),
    )


@inner_kernel
def _slot(value: np.uint64) -> int:
    return int((value * HASH_PRIME) >> np.uint64(64 - _SLOT_BITS))


@kernel
def _rules_by_line(data: Bytes, lines: Pieces, skipped: Flags, keys: Keys, folded: Codes) -> Masks:
    found = np.zeros(lines.offsets[-1], np.uint32)
    for text in range(len(lines.offsets) - 1):
        first, last = lines.offsets[text], lines.offsets[text + 1]
        for line in range(first, last):
            allowed = int(keys.allowed[min(lines.chars[line], len(keys.allowed) - 1)])
            if allowed and not skipped[text]:
                found[line] = _rules(
                    data, lines.begins[line], lines.ends[line], keys, folded, allowed
                )
    return found


@inner_kernel
def _rules(data: Bytes, begin: int, end: int, keys: Keys, folded: Codes, allowed: int) -> int:
    mask = 0
    before = np.uint64(0)  # the last byte is of a word
    for at in range(begin, end, 8):
        chunk = load8(data, at, end)
        words = alphanumeric(chunk)
        starts = words & ~(words << np.uint64(8) | before) | lead_bytes(chunk)
        before = words >> np.uint64(56)
        while starts:
            start = at + first_byte(starts)
            starts &= starts - np.uint64(1)
            value = load8(data, start, end)
            lead = value & np.uint64(0xFF)
            if lead < 0x80:
                value = fold(value) & _FOUR
            else:
                value &= _TWO if lead < 0xE0 else _SIX
            slot = _slot(value)
            if keys.bits[slot >> 3] >> (slot & 7) & 1:
                for entry in range(keys.starts[slot], keys.starts[slot + 1]):
                    bit = 1 << int(keys.rules[entry])
                    if bit & allowed & ~mask and _stands(
                        data, begin, start, end, keys, entry, folded
                    ):
                        mask |= bit
    return mask


@kernel
def _stands(
    data: Bytes, begin: int, start: int, end: int, keys: Keys, entry: int, folded: Codes
) -> bool:
    """Does the key stand there, at the beginning of a word?"""
    at = start - keys.backs[entry]
    if at < begin or (at > begin and _is_word(data[at]) and _is_word(data[at - 1])):
        return False
    i = 0
    while keys.codes[entry, i]:
        if at >= end:
            return False
        code, at = next_char(data, at)
        if folded[code] != keys.codes[entry, i]:
            return False
        i += 1
    return True


@inner_kernel
def _is_word(byte: int) -> bool:
    """Is it an ASCII letter or digit?"""
    return 48 <= byte <= 57 or 97 <= (byte | 32) <= 122
