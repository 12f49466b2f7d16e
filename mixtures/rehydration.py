"""Documents that stand several times in a mixture, by how many copies a corpus has of them.

Removing all copies of a text takes away what the web said of it: what stands a few times is often
worth more than what stands once, and what stands a thousand times is spam. FineWeb2 (Penedo et al.
2025, "rehydration") therefore repeats what is left by the size of its cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

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
