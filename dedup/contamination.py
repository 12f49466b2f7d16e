"""Which documents hold held-out text: exact matching over shingles.

The held-out side is small and fixed, so it is indexed once: its distinct hashes, sorted, with a
directory by top bits. Hashes are uniform and a document's are sorted, so a look-up is one step into
the directory, in ascending order, and nearly always ends there: a document that shares nothing
costs some nanoseconds a shingle, a small part of making them.

Containment, |A & H| / min(|A|, |H|), finds a held-out text quoted inside a long page, and a piece
of a long held-out text that became a page of its own; Jaccard would see neither. A near copy by
Jaccard counts as well, whatever the containment asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.shingles import Array, Hashes, Offsets
from kernels.compile import kernel

# Below this, only near copies count: a short phrase is contained in anything. Nine shingles of five
# words are 13 words, the shortest overlap that GPT-3 counted as contamination (Brown et al. 2020,
# appendix C).
MIN_SHINGLES = 9


class Index(NamedTuple):
    """Held-out shingles: hash k of `hashes` stands in texts `texts[starts[k]:starts[k + 1]]`."""

    hashes: Hashes
    starts: npt.NDArray[np.int64]
    texts: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int64]  # shingles of each held-out text
    directory: npt.NDArray[np.int64]  # hashes with top bits b: [directory[b], directory[b + 1])


def build_index(hashes: Hashes, offsets: Offsets) -> Index:
    """Index the held-out texts whose shingles these are, as from `shingles`."""
    sizes = np.diff(offsets)
    owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    order = np.argsort(hashes, kind="stable")
    distinct, starts = np.unique(hashes[order], return_index=True)
    bits = max(1, int(2 * len(distinct)).bit_length())  # two to four entries per hash
    borders = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    directory = np.append(np.searchsorted(distinct, borders), len(distinct))
    return Index(distinct, np.append(starts, len(hashes)), owners[order], sizes, directory)


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
    document, heldout, shared = _count_shared(*index, hashes, offsets, containment, jaccard)
    order = np.lexsort((heldout, document))
    document, heldout, shared = document[order], heldout[order], shared[order]
    sizes = np.diff(offsets)[document], index.sizes[heldout]
    similar = shared / (sizes[0] + sizes[1] - shared)
    contained = shared / np.minimum(*sizes)
    return document, heldout, similar.astype(np.float32), contained.astype(np.float32)


@kernel
def _count_shared(
    distinct: Array,
    starts: Array,
    texts: Array,
    sizes: Array,
    directory: Array,
    hashes: Array,
    offsets: Array,
    containment: float,
    jaccard: float,
) -> tuple[Array, Array, Array]:
    shift = np.uint64(64)
    entries = len(directory) - 1
    while entries > 1:
        entries >>= 1
        shift -= np.uint64(1)
    counts = np.zeros(len(sizes), np.int64)
    touched = np.empty(len(sizes), np.int64)
    found = np.empty((16, 3), np.int64)  # document, held-out text, shared shingles
    num_found = 0
    for document in range(len(offsets) - 1):
        num_touched = 0
        for h in hashes[offsets[document] : offsets[document + 1]]:
            bucket = h >> shift
            for k in range(directory[bucket], directory[bucket + np.uint64(1)]):
                if distinct[k] != h:
                    continue
                for text in texts[starts[k] : starts[k + 1]]:
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
