"""Which documents hold held-out text: exact matching over shingles.

The held-out side is small and fixed, so it is indexed once: its hashes, sorted, with a directory by
top bits and a bit for each value of more of them, 16 to 18 bytes a shingle. Hashes are uniform and
a document's are sorted, so a look-up is one bit, in ascending order, and nearly always ends there:
a document that shares nothing costs a few nanoseconds a shingle, a small part of making them.

Containment, |A & H| / min(|A|, |H|), finds a held-out text quoted inside a long page, and a piece
of a long held-out text that became a page of its own; Jaccard would see neither. A near copy by
Jaccard counts as well, whatever the containment asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.shingles import Array, Hashes, Offsets
from kernels.compile import kernel

# Below this, only near copies count: a short phrase is contained in anything. Nine shingles of five
# words are 13 words, the shortest overlap that GPT-3 counted as contamination (Brown et al. 2020,
# appendix C).
MIN_SHINGLES = 9


Texts = npt.NDArray[np.int32]
MOST_BITS = 4  # of a hash, by which an index is sorted piece by piece
BITS = 16  # of `present` for a shingle, at least: one look-up in 16 to 32 goes on for nothing


class Index(NamedTuple):
    """Held-out shingles: hash k of `hashes`, ascending, stands in text `texts[k]`."""

    hashes: Hashes
    texts: Texts
    sizes: npt.NDArray[np.int64]  # shingles of each held-out text
    directory: npt.NDArray[np.uint32]  # hashes with top bits b: [directory[b], directory[b + 1])
    present: npt.NDArray[np.uint8]  # bit b, lowest first: does a hash with top bits b stand here?


def build_index(hashes: Hashes, offsets: Offsets) -> Index:
    """Index the held-out texts whose shingles these are, as from `shingles`."""
    pieces = list(sorted_pieces([by_hash(hashes, offsets)]))
    hashes, texts = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return Index(hashes, texts, np.diff(offsets), directory(hashes), presence(hashes))


def by_hash(hashes: Hashes, offsets: Offsets, first: int = 0) -> tuple[Hashes, Texts]:
    """Shingles of texts with the numbers from `first` on, sorted, and the text of each."""
    owners = np.repeat(np.arange(first, first + len(offsets) - 1, dtype=np.int32), np.diff(offsets))
    order = np.argsort(hashes, kind="stable")
    return hashes[order], owners[order]


def sorted_pieces(runs: list[tuple[Hashes, Texts]]) -> Iterator[tuple[Hashes, Texts]]:
    """Runs of `by_hash`, texts ascending, as one: piece by piece, so that little is copied."""
    borders = np.arange(1 << MOST_BITS, dtype=np.uint64) << np.uint64(64 - MOST_BITS)
    cuts = [np.append(np.searchsorted(hashes, borders), len(hashes)) for hashes, _ in runs]
    for piece in range(1 << MOST_BITS):
        inside = [slice(cut[piece], cut[piece + 1]) for cut in cuts]
        parts = [(run[0][cut], run[1][cut]) for run, cut in zip(runs, inside, strict=True)]
        hashes, texts = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(hashes, kind="stable")
        yield hashes[order], texts[order]


def directory(hashes: Hashes) -> npt.NDArray[np.uint32]:
    """Where hashes with the same top bits begin: two to four of them."""
    bits = max(1, int(len(hashes) // 4).bit_length())
    borders = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    return np.append(np.searchsorted(hashes, borders), len(hashes)).astype(np.uint32)


def presence(hashes: Hashes) -> npt.NDArray[np.uint8]:
    """A bit for each value of as many top bits as make BITS of them a hash."""
    bits = max(3, (BITS * len(hashes)).bit_length())
    present = np.zeros(1 << (bits - 3), np.uint8)
    _mark(hashes, present)
    return present


def matches(
    index: Index, hashes: Hashes, offsets: Offsets, containment: float, jaccard: float
) -> tuple[
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.float32],
    npt.NDArray[np.float32],
]:
    """All (document, held-out text, Jaccard, containment) where one reaches its threshold, sorted.

    Containment counts from MIN_SHINGLES shingles on both sides. Exact; linear in shingles and hits.
    Values are rounded to float32: do not compare them with the thresholds again.

    Raises:
        ValueError: a threshold is not in (0, 1].
    """
    for name, threshold in (("containment", containment), ("jaccard", jaccard)):
        if not 0 < threshold <= 1:
            raise ValueError(f"{name} = {threshold}: a threshold is above 0, at most 1")
    for array in index:  # one kind of array for the kernel, mapped from a file or not
        array.setflags(write=False)
    document, heldout, shared = _count_shared(*index, hashes, offsets, containment, jaccard)
    order = np.lexsort((heldout, document))
    document, heldout, shared = document[order], heldout[order], shared[order]
    sizes = np.diff(offsets)[document], index.sizes[heldout]
    similar = shared / (sizes[0] + sizes[1] - shared)
    contained = shared / np.minimum(*sizes)
    return document, heldout, similar.astype(np.float32), contained.astype(np.float32)


@kernel
def _shift(entries: int) -> np.uint64:
    """By how much a hash is shifted to be a number below `entries`, a power of two."""
    shift = np.uint64(64)
    while entries > 1:
        entries >>= 1
        shift -= np.uint64(1)
    return shift


@kernel
def _mark(hashes: Array, present: Array) -> None:
    shift = _shift(8 * len(present))
    for h in hashes:
        bit = h >> shift
        present[bit >> np.uint64(3)] |= np.uint8(1) << np.uint8(bit & np.uint64(7))


@kernel
def _count_shared(
    held: Array,
    texts: Array,
    sizes: Array,
    directory: Array,
    present: Array,
    hashes: Array,
    offsets: Array,
    containment: float,
    jaccard: float,
) -> tuple[Array, Array, Array]:
    shift, bit_shift = _shift(len(directory) - 1), _shift(8 * len(present))
    counts = np.zeros(len(sizes), np.int64)
    touched = np.empty(len(sizes), np.int64)
    found = np.empty((16, 3), np.int64)  # document, held-out text, shared shingles
    num_found = 0
    for document in range(len(offsets) - 1):
        num_touched = 0
        for h in hashes[offsets[document] : offsets[document + 1]]:
            bit = h >> bit_shift
            if not present[bit >> np.uint64(3)] >> np.uint8(bit & np.uint64(7)) & 1:
                continue
            bucket = h >> shift
            for k in range(directory[bucket], directory[bucket + np.uint64(1)]):
                if held[k] == h:
                    text = texts[k]
                    if counts[text] == 0:
                        touched[num_touched] = text
                        num_touched += 1
                    counts[text] += 1
        size = offsets[document + 1] - offsets[document]
        for text in touched[:num_touched]:
            shared, counts[text] = counts[text], 0
            smaller = min(size, sizes[text])
            contained = smaller >= MIN_SHINGLES and shared / smaller >= containment
            if not contained and shared / (size + sizes[text] - shared) < jaccard:
                continue
            if num_found == len(found):
                found = np.concatenate((found, found))
            found[num_found, 0], found[num_found, 1] = document, text
            found[num_found, 2] = shared
            num_found += 1
    return found[:num_found, 0], found[:num_found, 1], found[:num_found, 2]
