"""What labels say: rates with intervals, and how far two reviewers agree."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Z = 1.959963984540054  # two-sided 95 %


def wilson(hits: int, n: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927); (0, 1) of nothing."""
    if n == 0:
        return 0.0, 1.0
    share = hits / n
    middle = share + Z * Z / (2 * n)
    half = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def weighted_kappa(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Cohen's kappa with quadratic weights (Cohen 1968), of at least one pair of labels; of two
    values it is the plain one.

    1: the same everywhere; 0: as often as chance; 0 too where neither ever varies.
    """
    ours, theirs = np.asarray(a, np.float64), np.asarray(b, np.float64)
    chance = float(ours.var() + theirs.var() + (ours.mean() - theirs.mean()) ** 2)  # of all pairs
    return 1 - float(((ours - theirs) ** 2).mean()) / chance if chance else 0.0
