"""Which copies stay: rule 2 of the design.

Walk the selected documents in order of preference; keep one unless a *kept* document forms a
verified pair with it. With a chain a~b~c: if b comes first, only b stays; if a does, a and c stay,
for c was never found similar to anything kept. "Drop what has a better copy" would lose c, and
"keep the best of each cluster" would lose it too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dedup.join import similarity_join
from dedup.shingles import Array, Hashes, Offsets
from kernels.compile import kernel

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def keep_unique(order: Indices, left: Indices, right: Indices, num: int) -> Mask:
    """Mask over `num` contents: those of `order` (best first, each once) that stay.

    `left[k]`, `right[k]` is a verified pair; pairs with contents outside `order` have no effect.
    """
    ends = np.concatenate([left, right])
    neighbours = np.concatenate([right, left])[np.argsort(ends, kind="stable")]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=num))])
    return np.asarray(_keep(order, offsets, neighbours, num), np.bool_)


def keep_unique_by_shingles(
    order: Indices, hashes: Hashes, offsets: Offsets, threshold: float
) -> Mask:
    """The same rule where pairs were not stored: each text of `order` is verified against those
    kept before it. Mask over all `len(offsets) - 1` texts.

    Memory is 5 to 9 bytes a shingle beside the `hashes`, more the more of them are kept. Time
    is that of reading them, unless many are kept that share rare shingles: docs/decisions.md.
    """
    return similarity_join(hashes, offsets, threshold, order, greedy=True)[0]


@kernel
def _keep(order: Array, offsets: Array, neighbours: Array, num: int) -> Array:
    kept = np.zeros(num, np.bool_)
    blocked = np.zeros(num, np.bool_)
    for content in order:
        if blocked[content]:
            continue
        kept[content] = True
        for k in range(offsets[content], offsets[content + 1]):
            blocked[neighbours[k]] = True
    return kept
