"""Which source a window comes from: one period table, filled by Tijdeman's chairman rule.

Weights become integer quotas of a period of at most 65,536 windows; the period repeats. Every
prefix of the sequence holds each source's share to within one window (a golden-ratio sequence is
off by 3.6, a shuffled block of 1,024 by 26), and a position resolves in O(1):

    position -> (period, slot) -> source, and its window number = period * quota + rank of the slot

R. Tijdeman, "The chairman assignment problem", Discrete Mathematics 32 (1980).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

MAX_PERIOD = 65_536
MAX_ROUNDING = 0.01  # relative; beyond it the mixture is not the one that was asked for
EXACT = 1e-9  # relative rounding error that counts as none


@dataclass(frozen=True)
class Schedule:
    """The period: `source[slot]` and how many earlier slots of the period have the same source."""

    names: tuple[str, ...]
    quotas: np.ndarray  # windows of each source per period, int64; they sum to the period
    source: np.ndarray  # [period] int64
    rank: np.ndarray  # [period] int64

    @property
    def period(self) -> int:
        return len(self.source)

    def realised(self) -> dict[str, float]:
        """Share of the windows that each source really gets."""
        return {n: int(q) / self.period for n, q in zip(self.names, self.quotas, strict=True)}

    def locate(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Source index and window number within that source, for global window numbers."""
        period, slot = np.divmod(np.asarray(position, dtype=np.int64), self.period)
        source = self.source[slot]
        return source, period * self.quotas[source] + self.rank[slot]

    def windows_until(self, end: int) -> np.ndarray:
        """Windows of each source among the global positions 0 .. end-1."""
        period, slots = divmod(end, self.period)
        partial = np.bincount(self.source[:slots], minlength=len(self.names))
        return period * self.quotas + partial


def make_schedule(weights: Mapping[str, float]) -> Schedule:
    """The schedule of a mixture.

    Raises:
        ValueError: a weight cannot be met to within 1 % by whole windows of a period.
    """
    names = tuple(weights)
    shares = np.array([weights[name] for name in names], dtype=np.float64)
    shares = shares / shares.sum()
    quotas = choose_quotas(shares)
    error = np.abs(quotas / quotas.sum() - shares) / shares
    worst = int(error.argmax())
    if error[worst] > MAX_ROUNDING:
        raise ValueError(
            f"source {names[worst]!r}: weight {shares[worst]:.3g} becomes {quotas[worst]} of "
            f"{quotas.sum()} windows, off by {100 * error[worst]:.1f} %; raise its weight to at "
            f"least {1 / (2 * MAX_ROUNDING * MAX_PERIOD):.2g} of the sum, or leave the source out"
        )
    table = fill_period(quotas)
    rank = np.empty_like(table)
    for index in range(len(names)):
        (slots,) = np.nonzero(table == index)
        rank[slots] = np.arange(len(slots))
    return Schedule(names, quotas, table, rank)


def choose_quotas(shares: np.ndarray) -> np.ndarray:
    """Integer quotas [num_sources] of the shortest period that is exact, else of the closest one.

    `shares` sum to 1. The longest period is always a candidate, rounded by largest remainder.
    """
    periods = np.arange(1, MAX_PERIOD + 1)
    quotas: np.ndarray = np.rint(periods[:, None] * shares)
    error = (np.abs(quotas / periods[:, None] - shares) / shares).max(axis=1)
    error[quotas.sum(axis=1) != periods] = np.inf
    error[error < EXACT] = 0
    best = int(error.argmin())  # the first, so the shortest, of equals
    if error[best] <= MAX_ROUNDING:
        closest: np.ndarray = quotas[best].astype(np.int64)
        return closest
    exact = shares * MAX_PERIOD
    longest: np.ndarray = np.floor(exact).astype(np.int64)
    missing = MAX_PERIOD - int(longest.sum())
    longest[np.argsort(longest - exact, kind="stable")[:missing]] += 1
    return longest


def fill_period(quotas: np.ndarray) -> np.ndarray:
    """The source of each slot [period] such that every prefix is within one window of its share.

    Among the sources that may have the slot without running too far ahead, it goes to the one that
    must have one soonest. All in integers: shares are scaled by period * (2n - 2).
    """
    num, period = len(quotas), int(quotas.sum())
    if num == 1:
        return np.zeros(period, dtype=np.int64)
    margin = 2 * num - 2
    step = [int(quota) * margin for quota in quotas]  # what a source is owed more after each slot
    unit = period * margin  # one window
    owed = [0] * num
    table = np.empty(period, dtype=np.int64)
    for slot in range(period):
        chosen, soonest = -1, 0
        for index in range(num):
            owed[index] += step[index]
            if owed[index] >= period and step[index]:
                deadline = (unit - period - owed[index] + step[index] - 1) // step[index]
                if chosen < 0 or deadline < soonest:
                    chosen, soonest = index, deadline
        table[slot] = chosen
        owed[chosen] -= unit
    return table
