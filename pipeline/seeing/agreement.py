"""What labels say: rates with intervals, and how far two reviewers agree."""

from __future__ import annotations

import math
from collections.abc import Sequence

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


def weighted_kappa(a: Sequence[float], b: Sequence[float]) -> float:
    """Cohen's kappa with quadratic weights (Cohen 1968); of two values it is the plain one.

    1: the same everywhere; 0: as often as chance; 0 too where neither ever varies.
    """
    pairs = list(zip(a, b, strict=True))
    seen = sum((x - y) ** 2 for x, y in pairs) / max(1, len(pairs))
    chance = sum((x - y) ** 2 for x in a for y in b) / max(1, len(a) * len(b))
    return 1 - seen / chance if chance else 0.0
