"""Which entries were found in a text: the words beside a score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters.names import Offsets

MOST = 8  # pieces of evidence of a text, in every group


def distinct(texts: Offsets, entries: Offsets, num_entries: int) -> tuple[Offsets, Offsets]:
    """The different entries of each text: texts, entries; the most frequent of a text first."""
    pairs, counts = np.unique(texts * num_entries + entries, return_counts=True)
    found = pairs // max(num_entries, 1)
    order = np.lexsort((pairs, -counts, found))
    return found[order], pairs[order] % max(num_entries, 1)


def listed(texts: Offsets, entries: Offsets, names: Sequence[str], num_texts: int) -> pa.ListArray:
    """The names of at most MOST entries a text, of what `distinct` gives."""
    starts = np.searchsorted(texts, np.arange(num_texts + 1))
    ranks = np.arange(len(texts)) - starts[texts]
    kept = entries[ranks < MOST]
    lengths = np.minimum(np.diff(starts), MOST)
    offsets: npt.NDArray[np.int32] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    words = pa.array(names, pa.string()).take(pa.array(kept, pa.int64()))
    return pa.ListArray.from_arrays(pa.array(offsets), words)
