"""Which source a window comes from: one period table a phase, filled by Tijdeman's chairman rule.

Weights become integer quotas of a period of at most 65,536 windows; the period repeats. Every
prefix of a phase holds each source's share to within one window (a golden-ratio sequence is
off by 3.6, a shuffled block of 1,024 by 26), and a position resolves in O(1):

    position -> phase -> (period, slot) -> source, and its window number =
        its windows in the phases before + period * quota + rank of the slot

So the windows of a source are counted on over phases, and none comes twice in an epoch.

R. Tijdeman, "The chairman assignment problem", Discrete Mathematics 32 (1980).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

MAX_PERIOD = 65_536
MAX_ROUNDING = 0.01  # relative; beyond it the mixture is not the one that was asked for
EXACT = 1e-9  # relative rounding error that counts as none


@dataclass(frozen=True)
class Schedule:
    """Periods, one after the other; the last one goes on for ever."""

    periods: tuple[Period, ...]  # of each phase
    begins: np.ndarray  # [phases] int64: first window of each; the first begins at 0
    bases: np.ndarray  # [phases, sources] int64: windows of each source before the phase

    def locate(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Source index and window number within that source, for global window numbers."""
        position = np.asarray(position, dtype=np.int64)
        phase = np.searchsorted(self.begins, position, side="right") - 1
        source, number = np.empty_like(position), np.empty_like(position)
        for at in np.unique(phase):
            here = phase == at
            source[here], inside = self.periods[at].locate(position[here] - self.begins[at])
            number[here] = self.bases[at, source[here]] + inside
        return source, number

    def windows_until(self, end: int) -> np.ndarray:
        """Windows of each source among the global positions 0 .. end-1."""
        at = int(np.searchsorted(self.begins, end, side="right")) - 1
        found: np.ndarray = self.bases[at] + self.periods[at].windows_until(
            end - int(self.begins[at])
        )
        return found

    def of(self, source: int, end: int) -> int:
        """Windows of one source among the global positions 0 .. end-1."""
        return int(self.windows_until(end)[source])


def make_schedule(phases: Sequence[tuple[int, Mapping[str, float]]]) -> Schedule:
    """The schedule of phases: (first window, weight of each source; 0: it is absent).

    Raises:
        ValueError: a weight cannot be met to within 1 % by whole windows of a period.
    """
    periods: list[Period] = []
    begins: list[int] = []
    bases: list[np.ndarray] = []
    for begin, weights in phases:
        seen = np.zeros(len(weights), np.int64)
        if periods:
            seen = bases[-1] + periods[-1].windows_until(begin - begins[-1])
        try:
            periods.append(make_period(weights))
        except ValueError as error:
            where = f"phase {len(periods) + 1}: " if len(phases) > 1 else ""
            raise ValueError(f"{where}{error}") from None
        begins.append(begin)
        bases.append(seen)
    return Schedule(tuple(periods), np.array(begins, np.int64), np.stack(bases))


def stretches(windows: Mapping[str, int]) -> list[tuple[int, dict[str, int]]]:
    """Lengths and weights of what a run of just these windows is made of.

    Up to MAX_PERIOD they are one period. Longer ones are k equal periods, as many as are needed,
    and behind them what does not divide by k: fewer than k windows of each source. So each source
    has its windows to the last one, and in every prefix of the k periods its share of all to a
    window a period.

    Raises:
        ValueError: a source has fewer windows than there are periods.
    """
    found: list[tuple[int, dict[str, int]]] = []
    left = dict(windows)
    while (total := sum(left.values())) > MAX_PERIOD:
        num = -(-total // MAX_PERIOD)
        quotas = {name: number // num for name, number in left.items()}
        for name, number in windows.items():
            if number and not found and not quotas[name]:
                raise ValueError(
                    f"source {name!r} has {number} windows of {total:,}, and would come at the end "
                    f"alone; give it at least {num}, or leave it out"
                )
        found.append((num * sum(quotas.values()), quotas))
        left = {name: number - num * quotas[name] for name, number in left.items()}
    return found + ([(total, left)] if total else [])


@dataclass(frozen=True)
class Period:
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


def make_period(weights: Mapping[str, float]) -> Period:
    """The period of a phase; a source of weight 0 has no slot.

    Raises:
        ValueError: a weight cannot be met to within 1 % by whole windows of a period.
    """
    names = tuple(weights)
    shares = np.array([weights[name] for name in names], dtype=np.float64)
    shares = shares / shares.sum()
    (present,) = np.nonzero(shares)
    quotas, error = np.zeros(len(names), np.int64), np.zeros(len(names))
    quotas[present] = choose_quotas(shares[present])
    error[present] = np.abs(quotas[present] / quotas.sum() - shares[present]) / shares[present]
    worst = int(error.argmax())
    if error[worst] > MAX_ROUNDING:
        raise ValueError(
            f"source {names[worst]!r}: weight {shares[worst]:.3g} becomes {quotas[worst]} of "
            f"{quotas.sum()} windows, off by {100 * error[worst]:.1f} %; raise its weight to at "
            f"least {1 / (2 * MAX_ROUNDING * MAX_PERIOD):.2g} of the sum, or leave the source out"
        )
    table = present[fill_period(quotas[present])]
    rank = np.empty_like(table)
    for index in range(len(names)):
        (slots,) = np.nonzero(table == index)
        rank[slots] = np.arange(len(slots))
    return Period(names, quotas, table, rank)


def choose_quotas(shares: np.ndarray) -> np.ndarray:
    """Integer quotas [num_sources] of the shortest period that is exact, else of the closest one.

    `shares` are above 0 and sum to 1. The longest period is always a candidate, rounded by largest
    remainder.
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
