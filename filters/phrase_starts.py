"""Where in a text a phrase may begin: this look at every character is all that most text costs."""

from __future__ import annotations

import numpy as np

from filters.automaton import ANY, WIDE, Bits, Keys, bits_of, pair_of, place_of, run_of
from filters.names import Offsets
from filters.symbols import BLANK, DIGIT, GAP, HAN, LETTER, NOTHING, VALUE, Symbols
from filters.text import next_char
from kernels.compile import inner_kernel, leaf_kernel
from kernels.hashing import Bytes, mix


@leaf_kernel
def phrase_starts(
    data: Bytes,
    at: int,
    end: int,
    table: Symbols,
    pairs: Keys,
    heads: Keys,
    singles: Bits,
    starts: Offsets,
) -> int:
    """Where in data[at:end] a phrase may begin: how many places, in `starts`."""
    num_starts = 0
    first = -1  # a symbol with which a phrase may begin
    first_at = at
    before = 0  # the kind of the character before: LETTER, DIGIT or other
    while at < end:
        start = at
        byte = data[np.uint64(at)]
        word = False
        if 0xE4 <= byte <= 0xE9:  # Han, nearly always
            symbol = int(table[next_char(data, at)[0]])
            at += 3
            if symbol & HAN:
                if first >= 0:
                    pair = pair_of(first, symbol & VALUE)
                    if _has(pairs, pair) and _fits(pairs, pair, _next_han(data, at, end, table)):
                        starts[num_starts] = first_at
                        num_starts += 1
                first, first_at, before = symbol & VALUE, start, 0
                continue
        elif byte >= 0x80:
            code, at = next_char(data, at)
            symbol = int(table[code])
        else:
            symbol = int(table[byte])
            at += 1
            word = symbol & (LETTER | DIGIT) != 0
        if first >= 0 and (
            _has(pairs, pair_of(first, symbol & VALUE))
            or (symbol & (GAP | NOTHING) != 0 and singles[first >> 3] >> (first & 7) & 1 != 0)
        ):
            starts[num_starts] = first_at
            num_starts += 1
        first = -1
        if symbol & NOTHING:
            continue
        kind = symbol & (LETTER | DIGIT)
        apart = kind == 0 or kind != before
        before = kind
        if word:
            length, head = run_of(data, start, end, kind)
            at = start + length
            if apart and (
                (_has(heads, head) and _may_follow(data, at, end, table, heads, head))
                or (at < end and data[at] >= 0x80 and _goes_on(data, at, table, kind))
            ):
                starts[num_starts] = start
                num_starts += 1
            if at < end and data[at] == 0x20:  # saves a turn for every second one
                at += 1
                before = 0
        elif apart and symbol & BLANK == 0:
            first, first_at = symbol & VALUE, start
    return num_starts


@inner_kernel
def _has(filter_: Keys, hashed: np.uint64) -> bool:
    bits = bits_of(hashed)
    has: bool = filter_[place_of(hashed)] & bits == bits
    return has


@inner_kernel
def _fits(filter_: Keys, hashed: np.uint64, then: np.uint64) -> bool:
    """May a phrase go on so? `then` is what stands there, ANY if that says nothing."""
    return then == ANY or _has(filter_, mix(hashed, then)) or _has(filter_, mix(hashed, ANY))


@leaf_kernel
def _next_han(data: Bytes, at: int, end: int, table: Symbols) -> np.uint64:
    """The symbol at byte `at` if it is Han, else ANY: what is none may be passed over."""
    symbol = 0
    if at < end and 0xE4 <= data[at] <= 0xE9:
        symbol = int(table[next_char(data, at)[0]])
    return np.uint64(symbol & VALUE) if symbol & HAN else ANY


@leaf_kernel
def _may_follow(
    data: Bytes, at: int, end: int, table: Symbols, heads: Keys, head: np.uint64
) -> bool:
    """May a phrase that begins with the ASCII word before byte `at` end there, or go on so?"""
    if _has(heads, mix(head, ANY)) or (at < end and data[at] >= 0x80):
        return True
    space = at
    while at < end and data[at] < 0x80 and table[data[at]] & BLANK:
        at += 1
    if at == end:
        return False
    symbol = int(table[data[at]])
    if at == space:
        then = np.uint64(symbol & VALUE)
        gap = symbol & GAP != 0
        return _has(heads, mix(head, then)) or (gap and _has(heads, mix(head, WIDE)))
    kind = symbol & (LETTER | DIGIT)
    if kind == 0 or data[at] >= 0x80:
        return True
    length, then = run_of(data, at, end, kind)
    return (at + length < end and data[at + length] >= 0x80) or _has(heads, mix(head, then))


@leaf_kernel
def _goes_on(data: Bytes, at: int, table: Symbols, kind: int) -> bool:
    """Do the letters, or digits, before byte `at` go on in a character that is not ASCII?"""
    goes_on: bool = table[next_char(data, at)[0]] & (NOTHING | kind) != 0
    return goes_on
