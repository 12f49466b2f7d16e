"""What labels say: rates with intervals, and how far two reviewers agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

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


class Stratum(NamedTuple):
    documents: int  # that it has
    labelled: int
    hits: int  # of those labelled


class Share(NamedTuple):
    mean: float
    low: float
    high: float
    error: float | None  # standard; None: a stratum has one label, so its variance is not known


def stratified(strata: Sequence[Stratum]) -> Share:
    """A share of all documents of strata, each of which was drawn from at random, at least once.

    Mean and standard error are those of Cochran (1977, 5.3 and 5.6), with strata weighed by their
    documents and the finite population correction. The 95 % interval puts those of the strata
    (Wilson) together by their distances (MOVER: Zou and Donner 2008): an error of 0, as of strata
    where all labels are alike, does not make it a point. Of one large stratum it is Wilson's.
    """
    total = sum(stratum.documents for stratum in strata)
    mean = below = above = variance = 0.0
    for documents, labelled, hits in strata:
        share, (low, high) = hits / labelled, wilson(hits, labelled)
        unseen = 1 - labelled / documents
        weight = documents / total
        mean += weight * share
        below += weight**2 * unseen * (share - low) ** 2
        above += weight**2 * unseen * (high - share) ** 2
        if labelled > 1:
            variance += weight**2 * unseen * share * (1 - share) / (labelled - 1)
        elif unseen:
            variance = math.nan
    error = None if math.isnan(variance) else math.sqrt(variance)
    return Share(mean, mean - math.sqrt(below), mean + math.sqrt(above), error)


def weighted_kappa(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Cohen's kappa with quadratic weights (Cohen 1968), of at least one pair of labels; of two
    values it is the plain one.

    1: the same everywhere; 0: as often as chance; 0 too where neither ever varies.
    """
    ours, theirs = np.asarray(a, np.float64), np.asarray(b, np.float64)
    chance = float(ours.var() + theirs.var() + (ours.mean() - theirs.mean()) ** 2)  # of all pairs
    return 1 - float(((ours - theirs) ** 2).mean()) / chance if chance else 0.0
