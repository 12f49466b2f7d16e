"""The phases of a planned run: where each ends, what it has of each source, the schedule of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mixtures import budget, weighing
from mixtures.phases import Phase, ends
from mixtures.schedule import MAX_PERIOD, Schedule, make_schedule, stretches
from mixtures.select import SourceCounts
from mixtures.spec import Mixture


@dataclass(frozen=True)
class PlannedPhase:
    """A stretch of the run with weights of its own."""

    end: int  # the window after its last; the last phase ends with the run
    requested: tuple[float, ...]  # share of windows of each source, in it
    windows: tuple[int, ...] = ()  # of each source, where the budget says so; old plans have none

    @property
    def is_exact(self) -> bool:
        """Whether it has just these windows, which no single period holds."""
        return sum(self.windows) > MAX_PERIOD


def planned_phases(
    mixture: Mixture,
    counts: Mapping[str, SourceCounts],
    epoch: Mapping[str, float],
    filled: Mapping[str, float],
    tokens: int,
) -> tuple[tuple[PlannedPhase, ...], dict[str, float], frozenset[str]]:
    """The phases of a run, of which a mixture without any has one; what weights ask for in it, as
    shares of `weigh_by`; sources of which the budget decides.

    Args:
        epoch: of each source, windows that hold as many tokens as it has unique ones.
        filled: of each source, the share of places in its windows that hold a token.
    """
    phases = mixture.phases or (Phase(),)
    last = ends(phases, tokens, mixture.sequence_length)
    asked = [weighing.asked(mixture, phase, counts) for phase in phases]
    requested = [
        weighing.of_windows(weighing.of_tokens(mixture, shares, counts), filled) for shares in asked
    ]
    lengths = np.diff([0, *last]).tolist()
    windows, by_budget = budget.within(mixture, requested, epoch, lengths)
    requested = [weighing.normalized(of) for of in windows] or requested
    exact = [tuple(of.values()) for of in windows] or [()] * len(last)
    planned = [
        PlannedPhase(end, _values(shares), of)
        for end, shares, of in zip(last, requested, exact, strict=True)
    ]
    run = of_the_run(list(counts), planned, [*map(_values, asked)])
    return tuple(planned), run, by_budget


def _values(shares: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(shares.values())


def of_the_run(
    names: Sequence[str], phases: Sequence[PlannedPhase], shares: Sequence[Sequence[float]]
) -> dict[str, float]:
    """Shares of the whole run, from those in each phase."""
    if len(phases) == 1:
        return dict(zip(names, shares[0], strict=True))
    lengths = np.diff([0, *(phase.end for phase in phases)])
    whole = lengths @ np.array(shares) / phases[-1].end
    return dict(zip(names, whole.tolist(), strict=True))


def schedule_of(names: Sequence[str], phases: Sequence[PlannedPhase]) -> Schedule:
    """Of phases, in which a long one of exact windows is several stretches."""
    found: list[tuple[int, Mapping[str, float]]] = []
    begin = 0
    for phase in phases:
        if phase.is_exact:
            for length, of in stretches(dict(zip(names, phase.windows, strict=True))):
                if begin < phase.end:  # sources with `epochs` alone may be a window over
                    found.append((begin, of))
                begin += length
        else:
            found.append((begin, dict(zip(names, phase.requested, strict=True))))
        begin = phase.end
    return make_schedule(found)
