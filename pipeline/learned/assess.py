"""How good a classifier is on text that it has not seen: the numbers of its card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from filters import calibration

Values = npt.NDArray[np.floating]
Flags = npt.NDArray[np.bool_]
Z = 1.959964  # of a 95 % interval
ECE_BINS = 10


def cross_calibrated(
    margins: Values, good: Flags, halves: Flags, method: str
) -> npt.NDArray[np.float32]:
    """Each half's probabilities by a calibration fitted on the other: what is judged may not be
    what it was fitted on."""
    found = np.empty(len(margins), np.float32)
    for half in (halves, ~halves):
        fitted = calibration.fit(margins[~half], good[~half], method)
        found[half] = calibration.apply(margins[half], fitted)
    return found


def assess(margins: Values, probabilities: Values, good: Flags) -> dict[str, Any]:
    """Accuracy with its interval (Wilson 1927), the majority class, AUC, calibration error."""
    right = (probabilities >= 0.5) == good
    low, high = wilson(int(right.sum()), len(right))
    return {
        "documents": len(good),
        "positive": int(good.sum()),
        "accuracy": round(float(right.mean()), 4),
        "interval": [round(low, 4), round(high, 4)],
        "majority": round(max(float(good.mean()), 1 - float(good.mean())), 4),
        "auc": round(auc(margins, good), 4) if 0 < good.sum() < len(good) else None,
        "calibration_error": round(calibration_error(probabilities, good), 4),
    }


def by(
    names: Sequence[str], margins: Values, probabilities: Values, good: Flags
) -> dict[str, dict[str, Any]]:
    """The same of each language or source."""
    named = np.array(names, dtype=object)
    return {
        name: assess(margins[named == name], probabilities[named == name], good[named == name])
        for name in sorted(set(names))
    }


def beats_majority(found: dict[str, Any]) -> bool:
    """Whether the accuracy is above the majority class's, its interval and all."""
    return bool(found["interval"][0] > found["majority"])


def wilson(hits: int, total: int) -> tuple[float, float]:
    share, z2 = hits / total, Z * Z / total
    middle = (share + z2 / 2) / (1 + z2)
    half = Z * np.sqrt(share * (1 - share) / total + z2 / (4 * total)) / (1 + z2)
    return float(middle - half), float(middle + half)


def auc(margins: Values, good: Flags) -> float:
    """Share of pairs of a good and a bad text in the right order, ties half (Mann-Whitney)."""
    _, place, counts = np.unique(margins, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[place]
    num_good = int(good.sum())
    above = ranks[good].sum() - num_good * (num_good + 1) / 2
    return float(above / (num_good * (len(good) - num_good)))


def calibration_error(probabilities: Values, good: Flags) -> float:
    """Expected calibration error over ten equal bins (Naeini et al. 2015): the mean distance of a
    bin's mean probability from its share of good texts."""
    bins = np.minimum((probabilities * ECE_BINS).astype(np.int64), ECE_BINS - 1)
    sizes = np.bincount(bins, minlength=ECE_BINS)
    said = np.bincount(bins, probabilities, ECE_BINS)
    was = np.bincount(bins, good.astype(np.float64), ECE_BINS)
    return float(np.abs(said - was)[sizes > 0].sum() / len(good))
