"""Phrases that C4 looks for in a line, in any case: all of them in one loop over the bytes.

All but the bracket have ten bytes or more, so of any seven places in a row one is where one of a
phrase's first seven fours of bytes begins: a look at every seventh place misses none.
"""

from __future__ import annotations

import numpy as np

from filters.names import Positions
from kernels.cache import kept_arrays
from kernels.compile import inner_kernel, kernel
from kernels.hashing import HASH_PRIME, Bytes

# The first three are C4's (datatrove c4_filters.py); it has no Chinese phrases, those are ours.
JAVASCRIPT, POLICY, LOREM_IPSUM, CURLY_BRACKET = range(4)
PHRASES: dict[str, int] = {
    "javascript": JAVASCRIPT,
    **dict.fromkeys(
        (
            *("terms of use", "privacy policy", "cookie policy", "uses cookies"),
            *("use of cookies", "use cookies"),
            *("隐私政策", "隱私政策", "隱私權政策", "使用条款", "使用條款", "服务条款", "服務條款"),
        ),
        POLICY,
    ),
    "lorem ipsum": LOREM_IPSUM,
    "{": CURLY_BRACKET,
}

_STRIDE, _WIDTH = 7, 4
_SLOT_BITS = 12
_LONG = [phrase for phrase in PHRASES if phrase != "{"]
_LENGTHS = np.array([len(phrase.encode()) for phrase in _LONG])
assert _LENGTHS.min() >= _STRIDE + _WIDTH - 1
_TEXTS = np.array([list(p.encode().ljust(_LENGTHS.max(), b"\0")) for p in _LONG], np.uint8)
_KINDS = np.array([PHRASES[phrase] for phrase in _LONG])


@inner_kernel
def _slot(data: Bytes, at: int) -> int:
    """Four bytes, letters in lower case, as a place in `_FIRSTS`."""
    value = np.uint64(0)
    for i in range(_WIDTH):  # one load
        value |= np.uint64(data[np.uint64(at) + np.uint64(i)]) << np.uint64(8 * i)
    return int(((value | np.uint64(0x20202020)) * HASH_PRIME) >> np.uint64(64 - _SLOT_BITS))


def _looks() -> tuple[Positions, Positions]:
    """For each slot, 1 + the first of its looks, else 0; of each look its slot, its phrase, and how
    far it stands from where that begins."""
    looks = [
        (_slot(_TEXTS[phrase], place), phrase, place)
        for phrase in range(len(_LONG))
        for place in range(_STRIDE)
    ]
    table = np.array([*sorted(looks), (-1, 0, 0)], np.int32)
    firsts = np.zeros(1 << _SLOT_BITS, np.int32)
    for number in reversed(range(len(looks))):
        firsts[table[number, 0]] = number + 1
    return firsts, table


_FIRSTS, _LOOKS = kept_arrays([__file__], _looks)


@kernel
def count_phrases(data: Bytes, begin: int, end: int, counts: Positions) -> None:
    """Add to `counts`, by kind, how many phrases stand in `data[begin:end]`."""
    brackets = 0
    for at in range(begin, end):
        brackets += data[np.uint64(at)] == 0x7B
    counts[CURLY_BRACKET] += brackets
    for at in range(begin, end - _WIDTH + 1, _STRIDE):
        slot = _slot(data, at)
        look = _FIRSTS[slot] - 1
        if look < 0:
            continue
        while _LOOKS[look, 0] == slot:
            phrase = _LOOKS[look, 1]
            first = at - _LOOKS[look, 2]
            if first >= begin and first + _LENGTHS[phrase] <= end:
                counts[_KINDS[phrase]] += _stands_at(data, first, phrase)
            look += 1


@kernel
def _stands_at(data: Bytes, first: int, phrase: int) -> bool:
    for i in range(_LENGTHS[phrase]):
        byte = data[first + i]
        if 65 <= byte <= 90:
            byte += 32
        if byte != _TEXTS[phrase, i]:
            return False
    return True
