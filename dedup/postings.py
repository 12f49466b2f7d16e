"""The index of held-out texts: which of them have a shingle, told from few cache lines.

Who matches by `least`, the lower of the thresholds, shares at least `least` of the smaller text. So
of the `head` of a text, its lowest hashes, as many as may be missing in the other and an eighth of
all more, that eighth at least is shared, whichever of the two is the smaller. Hashes are uniform:
heads lie below a border, .36 of all hashes where `least` is .8. Above it, only what reaches over it
has to be looked for: a few hashes of short texts. So nearly two look-ups in three end in a
table of some 100 KB, the others in a third of a bitmap of one to two bytes a shingle, and of the
entries behind them, 8 bytes a shingle and 2 of the directory, a third is ever in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.shingles import Array, Hashes, Offsets
from kernels.compile import kernel

PIECES = 16  # of the hashes, by which an index is sorted, so that little is copied
EARLY_BITS = 4  # of `early` for a shingle, at least: one look-up in 4 to 8 goes on for nothing
LATE_BITS = 64  # of `late`: they are few, and asked for most
MARGIN = 1 / 32  # of all hashes, from where heads end on average to the border
SLACK = 1e-6  # taken off a real-valued bound before it is rounded up: see join.py


class Index(NamedTuple):
    """Held-out texts by the hashes of their shingles."""

    shingles: Hashes  # of text t: [offsets[t], offsets[t + 1]), ascending
    offsets: Offsets
    entries: npt.NDArray[np.uint64]  # by hash: 32 bits below those of the directory, then the text
    directory: npt.NDArray[np.uint32]  # entries with top bits b: [directory[b], directory[b + 1])
    early: npt.NDArray[np.uint8]  # of hashes below the border, a bit for their top bits: see `mark`
    late: npt.NDArray[np.uint8]  # of hashes of heads from the border on
    least: npt.NDArray[np.float64]  # the lowest threshold that may be asked for


def build_index(hashes: Hashes, offsets: Offsets, least: float) -> Index:
    """Index the texts whose shingles these are, as from `shingles`, for thresholds from `least`."""
    num = len(hashes)
    bits = max(1, (num // 4).bit_length())  # two to four entries have the same
    entries, late = np.empty(num, np.uint64), [np.empty(0, np.uint64)]
    counts = np.zeros(1 << bits, np.int64)
    early = bitmap_of(EARLY_BITS * num)
    limit, ends = border(least), _ends_of_heads(hashes, offsets, least)
    size = 0
    for some, texts in _by_hash(hashes, offsets):
        low = some << np.uint64(bits) & np.uint64(0xFFFFFFFF00000000)
        entries[size : size + len(some)] = low | texts.astype(np.uint64)
        size += len(some)
        counts += np.bincount((some >> np.uint64(64 - bits)).astype(np.int64), minlength=1 << bits)
        mark(some[some < limit], early)
        late.append(some[(some >= limit) & (some <= ends[texts])])
    late_hashes = np.concatenate(late)
    late_bitmap = bitmap_of(LATE_BITS * len(late_hashes))
    mark(late_hashes, late_bitmap)
    directory = np.append(0, np.cumsum(counts)).astype(np.uint32)
    return Index(hashes, offsets, entries, directory, early, late_bitmap, np.array([least]))


def border(least: float) -> np.uint64:
    """Below it lie nearly all heads."""
    share = 1 - least + 1 / 8 + MARGIN
    return np.uint64(min(int(share * 2**64), 2**64 - 1))


def _by_hash(hashes: Hashes, offsets: Offsets) -> Iterator[tuple[Hashes, npt.NDArray[np.int64]]]:
    """Hashes, ascending, and the text of each, piece by piece; texts of a hash ascend."""
    for piece in range(PIECES):
        at = np.flatnonzero(hashes >> np.uint64(60) == piece)
        at = at[np.argsort(hashes[at], kind="stable")]
        yield hashes[at], np.searchsorted(offsets, at, side="right") - 1


def _ends_of_heads(hashes: Hashes, offsets: Offsets, least: float) -> Hashes:
    """The highest hash of the head of each text; 0 where it has none."""
    ends = np.zeros(len(offsets) - 1, np.uint64)
    for text, num in enumerate(np.diff(offsets).tolist()):
        if num:
            ends[text] = hashes[offsets[text] + head(num, least) - 1]
    return ends


def bitmap_of(num_bits: int) -> npt.NDArray[np.uint8]:
    """At least so many bits, a power of two; what nobody marks or asks for takes no memory."""
    return np.zeros(1 << (max(8, num_bits).bit_length() - 3), np.uint8)


@kernel
def missing(num: int, least: float) -> int:
    """How many of the shingles of a text may be missing in a larger one that it matches."""
    return num - max(1, math.ceil(least * num - SLACK))


@kernel
def needed(num: int, least: float) -> int:
    """How many of the head are shared by who matches."""
    return min(num - missing(num, least), 1 + (num >> 3))


@kernel
def head(num: int, least: float) -> int:
    """How many of the lowest hashes of a text are its head."""
    return missing(num, least) + needed(num, least)


@kernel
def shift_of(entries: int) -> np.uint64:
    """By how much a hash is shifted to be a number below `entries`, a power of two."""
    shift = np.uint64(64)
    while entries > 1:
        entries >>= 1
        shift -= np.uint64(1)
    return shift


@kernel
def mark(hashes: Array, bitmap: Array) -> None:
    """Set the bit, lowest first in a byte, with the number that the top bits of each hash are."""
    shift = shift_of(8 * len(bitmap))
    for h in hashes:
        bit = h >> shift
        bitmap[bit >> np.uint64(3)] |= np.uint8(1) << np.uint8(bit & np.uint64(7))
