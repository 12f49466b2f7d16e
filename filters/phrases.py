"""Phrases that C4 looks for in a line, in any case: all of them in one loop over the bytes.

A phrase is looked for at its rarest byte (the k of "cookies"), so most bytes cost one look.
"""

from __future__ import annotations

import numpy as np

from kernels.compile import kernel
from kernels.hashing import Bytes

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

_RARE = b"{jkvfp" + bytes(range(0x80, 0xC0))  # rarest first; of Han any byte but the first


def _rarest(phrase: str) -> int:
    """Where in its bytes the rarest stands."""
    data = phrase.encode()
    return min(range(len(data)), key=lambda i: _RARE.find(data[i]) % len(_RARE + b" "))


_ORDERED = sorted(PHRASES, key=lambda phrase: phrase.encode()[_rarest(phrase)])
_LONGEST = max(len(phrase.encode()) for phrase in PHRASES)
_TEXTS = np.array([list(p.encode().ljust(_LONGEST, b"\0")) for p in _ORDERED], np.uint8)
_LENGTHS = np.array([len(phrase.encode()) for phrase in _ORDERED])
_RAREST = np.array([_rarest(phrase) for phrase in _ORDERED])
_KINDS = np.array([PHRASES[phrase] for phrase in _ORDERED])


def _firsts() -> Bytes:
    """For each byte, 1 + the first phrase whose rarest byte that is, in either case; else 0."""
    firsts = np.zeros(256, np.uint8)
    for number in reversed(range(len(_ORDERED))):
        byte = bytes([_TEXTS[number, _RAREST[number]]])
        firsts[[byte[0], byte.upper()[0]]] = number + 1
    return firsts


_FIRSTS = _firsts()


@kernel
def count_phrases(data: Bytes, begin: int, end: int, counts: np.ndarray) -> None:
    """Add to `counts`, by kind, how many phrases stand in `data[begin:end]`."""
    for at in range(begin, end):
        number = int(_FIRSTS[data[at]]) - 1
        if number < 0:
            continue
        rarest = _TEXTS[number, _RAREST[number]]
        while number < len(_KINDS) and _TEXTS[number, _RAREST[number]] == rarest:
            first = at - _RAREST[number]
            if first >= begin and first + _LENGTHS[number] <= end:
                counts[_KINDS[number]] += _stands_at(data, first, number)
            number += 1


@kernel
def _stands_at(data: Bytes, first: int, number: int) -> bool:
    for i in range(_LENGTHS[number]):
        byte = data[first + i]
        if 65 <= byte <= 90:
            byte += 32
        if byte != _TEXTS[number, i]:
            return False
    return True
