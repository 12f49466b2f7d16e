"""How long a run will still take: the parts that are left, at the pace of the last half of it.

Before the first parts are finished workers start and kernels are compiled, half a minute of it once
a machine: at the pace of the whole run 10 minutes were told where 1 was left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pipeline.stages import JOINS
from pipeline.watch import Stage


class Mark(NamedTuple):
    """What was done when parts were seen to be finished."""

    seconds: float
    cpu_seconds: float  # of all parts so far


def pace(marks: Sequence[Mark]) -> float | None:
    """Seconds that a CPU second of the parts takes, between the last mark and the first of those in
    the last half of the run, or the one before it. None while there are not two marks."""
    if len(marks) < 2:
        return None
    last = marks[-1]
    first = next(mark for mark in marks if mark is marks[-2] or mark.seconds >= last.seconds / 2)
    done = last.cpu_seconds - first.cpu_seconds
    return (last.seconds - first.seconds) / done if done else None


def seconds_left(stages: Mapping[str, Stage], pace: float | None) -> float | None:
    """Parts that are left, each at the mean cost of its stage so far, at `pace`.

    A stage that has not begun costs what the average part of a stage of its kind does; None while
    nothing is known.
    """
    if pace is None:
        return None
    waiting = [s for s in stages if not stages[s].made]
    begun = [stage for name, stage in stages.items() if stage.made and name not in JOINS]
    parts = sum(stage.made for stage in begun)
    mean = sum(stage.cpu_seconds for stage in begun) / parts if parts else 0.0
    left = sum(s.left * s.cpu_seconds / s.made for s in stages.values() if s.made)
    left += sum(stages[name].left * mean for name in waiting if name not in JOINS)
    return left * pace
