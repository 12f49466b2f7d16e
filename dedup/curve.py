"""The collision curve of locality-sensitive hashing, and the bands and rows that a threshold needs.

Two texts of Jaccard similarity s agree in a band of r values with probability s^r, in one of b such
bands with 1 - (1 - s^r)^b (Indyk and Motwani 1998; Leskovec et al., Mining of Massive Datasets,
3.4). Every candidate is verified, so what a curve proposes in vain costs time, and what it misses
is lost: `choose` takes a wanted recall at the threshold and then the steepest curve that has it.
datasketch weighs the areas of both faults instead, and gives up recall at the threshold: .40 with
its 9 bands of 13 for .8 and 128 values.
"""

from __future__ import annotations

import math

RECALL = 0.998  # of pairs at the threshold itself: 21 bands of 6 rows of 128 values at .8


def collision_probability(jaccard: float, bands: int, rows: int) -> float:
    """Chance that two texts of this Jaccard similarity become candidates."""
    return 1.0 - (1.0 - jaccard**rows) ** bands


def choose(threshold: float, permutations: int, recall: float = RECALL) -> tuple[int, int]:
    """(bands, rows): of all that find a pair at `threshold` with probability `recall`, the most
    rows that the values of a signature allow, and then as few bands as will do.

    Raises:
        ValueError: not even bands of one value find it that often.
    """
    for rows in range(permutations, 0, -1):
        bands = _bands(threshold**rows, recall)
        if bands * rows <= permutations:
            return bands, rows
    raise ValueError(
        f"{permutations} values find a pair at a Jaccard of {threshold} with probability "
        f"{collision_probability(threshold, permutations, 1):.3f}, not {recall}; raise "
        "`permutations` or `threshold`"
    )


def _bands(agree: float, recall: float) -> int:
    """How many bands it takes if one agrees with probability `agree`."""
    if agree >= recall:
        return 1
    return math.ceil(math.log1p(-recall) / math.log1p(-agree)) if agree > 0 else 1 << 62


def turning_point(bands: int, rows: int) -> float:
    """The Jaccard similarity around which the curve rises, about: (1/b)^(1/r)."""
    return float((1 / bands) ** (1 / rows))
