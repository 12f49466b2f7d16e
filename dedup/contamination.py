"""Which documents hold held-out text: exact matching over shingles.

Containment, |A & H| / min(|A|, |H|), finds a held-out text quoted inside a long page, and a piece
of a long held-out text that became a page of its own; Jaccard would see neither. A near copy by
Jaccard counts as well, whatever the containment asked for.

The held-out side is small and fixed, so it is indexed once (postings.py). Who has enough of a head
in common with a held-out text is compared with it as a whole. A document that shares nothing costs
5 ns a shingle, a part of making them; one of whose shingles a fifth stand in held-out texts, 12.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dedup.containment import MIN_SHINGLES, num_shared
from dedup.postings import Index, border, head, needed, shift_of
from dedup.shingles import Array, Hashes, Offsets
from kernels.compile import kernel

Found = tuple[
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.float32],
    npt.NDArray[np.float32],
]


def matches(
    index: Index, hashes: Hashes, offsets: Offsets, containment: float, jaccard: float
) -> Found:
    """All (document, held-out text, Jaccard, containment) where one reaches its threshold, sorted.

    Containment counts from MIN_SHINGLES shingles on both sides (dedup/containment.py). Exact;
    linear in shingles and hits. Values are rounded to float32: do not compare them with the
    thresholds again.

    Raises:
        ValueError: a threshold is not in (0, 1], or below the least that the index was made for.
    """
    least = float(index.least[0])
    for name, threshold in (("containment", containment), ("jaccard", jaccard)):
        if not 0 < threshold <= 1:
            raise ValueError(f"{name} = {threshold}: a threshold is above 0, at most 1")
        if threshold < least:
            raise ValueError(f"{name} = {threshold}: the index is for {least} and above")
    for array in index:  # one kind of array for the kernel, mapped from a file or not
        array.setflags(write=False)
    limit = border(least)
    document, heldout = _candidates(*index[1:6], limit, hashes, offsets, least)
    shared: npt.NDArray[Any] = num_shared(*index[:2], hashes, offsets, heldout, document)
    own, other = np.diff(offsets)[document], np.diff(index.offsets)[heldout]
    similar, smaller = shared / (own + other - shared), np.minimum(own, other)
    contained = shared / smaller
    found = (similar >= jaccard) | ((smaller >= MIN_SHINGLES) & (contained >= containment))
    document, heldout, similar, contained = (
        column[found] for column in (document, heldout, similar, contained)
    )
    order = np.lexsort((heldout, document))
    return (
        document[order],
        heldout[order],
        similar[order].astype(np.float32),
        contained[order].astype(np.float32),
    )


@kernel
def _candidates(
    held_offsets: Array,
    entries: Array,
    directory: Array,
    early: Array,
    late: Array,
    limit: np.uint64,
    hashes: Array,
    offsets: Array,
    least: float,
) -> tuple[Array, Array]:
    """Documents and held-out texts that share enough of what is looked up.

    Enough for the head of the smaller one: at least its head is looked up. What stands in `entries`
    is not quite a hash, so that now and then one too many is counted, never one too few.
    """
    shift = shift_of(len(directory) - 1)
    counts = np.zeros(len(held_offsets) - 1, np.int64)
    touched = np.empty(len(counts), np.int64)
    asked = np.empty(0, np.uint64)
    begins, ends = np.empty(0, np.uint32), np.empty(0, np.uint32)
    found = np.empty((16, 2), np.int64)
    num_found = 0
    for document in range(len(offsets) - 1):
        own = hashes[offsets[document] : offsets[document + 1]]
        if len(own) > len(asked):
            asked = np.empty(2 * len(own), np.uint64)
            begins, ends = np.empty(len(asked), np.uint32), np.empty(len(asked), np.uint32)
        below = np.searchsorted(own, limit)
        size = _marked(own[:below], early, asked, 0)
        end = max(below, head(len(own), least))
        for h in own[below:end]:  # of a head that reaches over the border
            asked[size] = h
            size += 1
        size = _marked(own[end:], late, asked, size)
        for i in range(size):
            bucket = asked[i] >> shift
            begins[i], ends[i] = directory[bucket], directory[bucket + np.uint64(1)]
        num_touched = 0
        for i in range(size):
            low = asked[i] << (np.uint64(64) - shift) >> np.uint64(32)
            for k in range(begins[i], ends[i]):
                if entries[k] >> np.uint64(32) == low:
                    text = np.int64(entries[k] & np.uint64(0xFFFFFFFF))
                    if counts[text] == 0:
                        touched[num_touched] = text
                        num_touched += 1
                    counts[text] += 1
        for text in touched[:num_touched]:
            shared, counts[text] = counts[text], 0
            smaller = min(len(own), held_offsets[text + 1] - held_offsets[text])
            if shared >= needed(smaller, least):
                if num_found == len(found):
                    found = np.concatenate((found, found))
                found[num_found, 0], found[num_found, 1] = document, text
                num_found += 1
    return found[:num_found, 0].copy(), found[:num_found, 1].copy()


@kernel
def _marked(hashes: Array, bitmap: Array, out: Array, size: int) -> int:
    """Append those hashes whose bit is set to `out[:size]`; return the new size. Without a branch
    for each: the next bits are on their way while one is waited for."""
    shift = shift_of(8 * len(bitmap))
    for h in hashes:
        bit = h >> shift
        out[size] = h
        is_set = bitmap[bit >> np.uint64(3)] >> np.uint8(bit & np.uint64(7)) & 1
        size = int(size + is_set)
    return size
