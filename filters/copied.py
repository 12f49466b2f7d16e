"""Signal group `copied`: pages taken from others, and characters that hide it.

Mirrors of serial novels say so themselves (kind `mirror` of words/ads.tsv: 本章未完, 天才一秒记住);
copies that were made hard to read by machines have characters that no author types. A share is of
all characters, and each becomes a part by s = share / (share + HALF_SHARE); mirrors by the weight w
of their distinct phrases, s = w / (w + 2), so that one phrase alone is a third.

    score = 1 - product of (1 - s)

What is not seen: characters replaced by images (the text has none), and spinning (伪原创): see
docs/advertising.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters.ad_phrases import KINDS, WEIGHTS, Found, phrases
from filters.columns import Signal
from filters.evidence import MOST
from filters.names import Offsets, Positions
from filters.segments import Texts
from filters.text import CLASSES, HAN, LATIN, SPACE, Bits, next_char
from kernels.compile import inner_kernel, kernel
from kernels.hashing import Bytes, load8

# Of an old book a lost character is □ too, so it takes a tenth of them.
HALF_SHARE = {"private_use": 0.02, "hidden": 0.02, "mixed_script": 0.02, "hole": 0.1}
SHARES = tuple(HALF_SHARE)
_PRIVATE, _HIDDEN, _MIXED, _HOLE = range(4)
_CHARS = len(SHARES)  # the column of all characters
_WORDS = HAN | LATIN


def _odd() -> Bytes:
    """First bytes of the characters that are looked for: few in Chinese, none in English."""
    codes = (0x400, 0x440, 0x480, 0x4C0, 0x500, 0x180E, 0x200B, 0x25A0, 0xE000, 0xF000, 0xFEFF)
    found = np.zeros(256, np.uint8)
    for code in (*codes, 0xE0000, 0xF0000, 0x100000):
        found[chr(code).encode()[0]] = 1
    return found


_ODD = _odd()
_TOPS = np.uint64(0x8080808080808080)  # set in bytes that are not ASCII

COLUMNS: dict[str, Signal] = {
    "mirror": Signal(
        pa.float32(), "phrases", "w / (w + 2) of distinct phrases of novel mirrors", "assay"
    ),
    "private_use_share": Signal(
        pa.float32(), "characters", "of private use, not after white space", "assay"
    ),
    "hidden_share": Signal(
        pa.float32(),
        "characters",
        "that cannot be seen (zero-width, direction, tags ...) between Han or Latin letters",
        "assay",
    ),
    "mixed_script_share": Signal(
        pa.float32(), "characters", "Cyrillic letters beside ASCII letters", "assay"
    ),
    "hole_share": Signal(
        pa.float32(),
        "characters",
        "＊■▇□ between Han characters, as one that was taken out",
        "assay",
    ),
    "score": Signal(
        pa.float32(),
        "text",
        "1 - product of (1 - s); s of a share: share / (share + half)",
        "assay",
    ),
    "evidence": Signal(
        pa.list_(pa.string()), "phrases", "up to 8: phrases, and numbers of characters", "assay"
    ),
}


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    del columns
    found = phrases(texts)
    mirrors = found.kinds == KINDS.index("mirror")
    weights = np.bincount(found.texts[mirrors], WEIGHTS[found.entries[mirrors]], len(texts))
    mirror = weights / (weights + 2)
    counts = _count(texts.data, texts.offsets, CLASSES)
    shares = counts[:, :_CHARS] / np.maximum(counts[:, _CHARS:], 1)
    halves = np.array(list(HALF_SHARE.values()))
    clean = (1 - mirror) * np.prod(halves / (shares + halves), axis=1)
    return {
        "mirror": mirror.astype(np.float32),
        **{f"{name}_share": shares[:, i].astype(np.float32) for i, name in enumerate(SHARES)},
        "score": (1 - clean).astype(np.float32),
        "evidence": _evidence(texts, found, mirrors, counts),
    }


def _evidence(
    texts: Texts, found: Found, mirrors: npt.NDArray[np.bool_], counts: Positions
) -> pa.Array:
    lists: list[list[str]] = [[] for _ in range(len(texts))]
    for row, number in zip(*np.nonzero(counts[:, :_CHARS]), strict=True):
        lists[row].append(f"{SHARES[number]}: {counts[row, number]} characters")
    for row in np.flatnonzero(mirrors).tolist():
        words = lists[found.texts[row]]
        if len(words) < MOST:
            span = texts.data[found.begins[row] : found.ends[row]].tobytes().decode()
            words.append(f"mirror: {span}")
    return pa.array(lists, COLUMNS["evidence"].type)


@kernel
def _count(data: Bytes, offsets: Offsets, classes: Bits) -> Positions:
    """Of each text: characters of each of SHARES, then all characters."""
    counts = np.zeros((len(offsets) - 1, _CHARS + 1), np.int32)
    for text in range(len(offsets) - 1):
        row = counts[text]
        low, end = offsets[text], offsets[text + 1]
        chars = 0
        for byte in data[low:end]:
            chars += byte & 0xC0 != 0x80
        row[_CHARS] = chars
        at = low
        while at < end:
            byte = data[at]
            if not _ODD[byte]:
                ascii_only = byte < 0x80 and load8(data, at, end) & _TOPS == 0
                at += 8 if ascii_only else 3 if byte >= 0xE0 else 1
                continue
            if byte == 0xEF and data[at + 1] == 0xBC and data[at + 2] != 0x8A:  # ， and its like
                at += 3
                continue
            start = at
            code, at = next_char(data, at)
            hidden, holes = int(_is_hidden(code)), int(_is_hole(code))
            if hidden + holes:  # a run of them
                after = at
                while after < end and _ODD[data[after]]:
                    code, after = next_char(data, after)
                    if not _is_hidden(code) and not _is_hole(code):
                        break
                    hidden += _is_hidden(code)
                    holes += _is_hole(code)
                    at = after
                around = classes[_before(data, low, start)], classes[_after(data, at, end)]
                if around[0] & _WORDS and around[1] & _WORDS:
                    row[_HIDDEN] += hidden
                if around[0] & around[1] & HAN:
                    row[_HOLE] += holes
            elif 0xE000 <= code <= 0xF8FF or code >= 0xF0000:
                row[_PRIVATE] += not classes[_before(data, low, start)] & SPACE
            elif 0x400 <= code < 0x530:
                row[_MIXED] += _is_ascii_letter(_before(data, low, start))
                row[_MIXED] += _is_ascii_letter(_after(data, at, end))
    return counts


@inner_kernel
def _before(data: Bytes, low: int, at: int) -> int:
    """The character before; a space at the beginning."""
    if at == low:
        return 32
    at -= 1
    while data[at] & 0xC0 == 0x80:
        at -= 1
    return int(next_char(data, at)[0])


@inner_kernel
def _after(data: Bytes, at: int, end: int) -> int:
    return int(next_char(data, at)[0]) if at < end else 32


@inner_kernel
def _is_ascii_letter(code: int) -> bool:
    return 97 <= code | 0x20 <= 122


@inner_kernel
def _is_hole(code: int) -> bool:
    return code in (0xFF0A, 0x25A0, 0x25A1, 0x2587)


@inner_kernel
def _is_hidden(code: int) -> bool:
    """Zero-width and directional characters, byte order marks, tags; no soft hyphen, no joiner of
    emoji (those do not stand between letters)."""
    return (
        0x200B <= code <= 0x200F
        or 0x202A <= code <= 0x202E
        or 0x2060 <= code <= 0x2064
        or code in (0x180E, 0xFEFF)
        or 0xE0000 <= code <= 0xE007F
    )
