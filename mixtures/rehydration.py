"""Documents that stand several times in a source: by how many copies a corpus has of them, or by
any expression over its columns.

Removing all copies of a text takes away what the web said of it: what stands a few times is often
worth more than what stands once, and what stands a thousand times is spam. FineWeb2 (Penedo et al.
2025, "rehydration") therefore repeats what is left by the size of its cluster.

An expression (`repeats_by: 1 + 2 * quality.score`) may give 1.7 times: the document stands once,
and with probability .7 once more, by a hash of seed and id. So it is the same at every call and in
any sharding, a larger value never gives fewer times, and the mean is the one that was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xxhash

MAX_TIMES = 100  # more is a slip: repeats above 4 bring little, above 16 nothing (Muennighoff 2023)
# cluster_size from which a document stands so many times
PRESETS: dict[str, dict[int, int]] = {
    "fineweb2": {1: 1, 2: 2, 3: 3, 5: 5, 100: 8, 1000: 1},  # as its published code has it
}


def times(steps: str | Mapping[int, int], cluster_sizes: np.ndarray) -> np.ndarray:
    """How often each document stands, of its `cluster_size`; `steps` as in mixture.yaml."""
    table = PRESETS[steps] if isinstance(steps, str) else steps
    sizes = np.array(sorted(table))
    counts = np.array([table[size] for size in sizes.tolist()])
    found: np.ndarray = counts[np.searchsorted(sizes, cluster_sizes, side="right") - 1]
    return found


def dealt(values: np.ndarray, ids: np.ndarray, seed: int) -> np.ndarray:
    """How often each document stands, int64.

    Args:
        values: float64, how often on average, 1 to MAX_TIMES.
        ids: V16.

    Raises:
        ValueError: a value is not in these bounds; names one and how many.
    """
    (wrong,) = np.nonzero(~((values >= 1) & (values <= MAX_TIMES)))  # NaN too
    if len(wrong):
        raise ValueError(
            f"is {values[wrong[0]]:g} for document {ids[wrong[0]].tobytes().hex()}, and not from 1 "
            f"to {MAX_TIMES} for {len(wrong):,} of {len(values):,}; bound it, as in `greatest(1, "
            "least(4, ...))`; what is to go, `where` leaves out"
        )
    whole = np.floor(values)
    found: np.ndarray = whole.astype(np.int64)
    (between,) = np.nonzero(values > whole)
    # The order of documents is a hash of seed and id too (packing.py): this is another one, or what
    # stands once more would all stand at the beginning.
    drawn = [xxhash.xxh3_64_intdigest(ids[at].tobytes() + b"again", seed) for at in between]
    found[between] += np.array(drawn, np.float64) / 2**64 < (values - whole)[between]
    return found
