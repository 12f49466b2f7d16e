"""Whether a run may go on with another plan: what it has read must be what that plan reads too.

A mixture may change in mid-run: other weights, more sources, another `where` as a new source. All
that counts is the sequence of windows up to where the run stands. Two plans are compared there, not
their settings: in a stretch in which both keep their phase both sequences of sources repeat, with
periods p and q, and two such sequences that agree in their first p + q windows agree for ever (N.
Fine, H. Wilf, "Uniqueness theorems for periodic functions", 1965). So the comparison is a proof,
and costs the same after a million steps as after one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from itertools import pairwise

import numpy as np

from mixtures.plan import Plan, PlannedSource

SAME = ("sequence_length", "seed", "tokenizer")  # of the whole mixture


def first_difference(before: Plan, after: Plan, windows: int) -> int | None:
    """The first of the positions 0 .. windows - 1 at which two plans read another window.

    Returns:
        None where they read the same windows in the same order.
    """
    if windows and any(getattr(before, key) != getattr(after, key) for key in SAME):
        return 0
    plans, codes = (before, after), _codes(before, after)
    borders = {0, windows}
    for plan in plans:
        borders |= {begin for begin in plan.schedule.begins.tolist() if begin < windows}
    for begin, end in pairwise(sorted(borders)):
        period = sum(_period_at(plan, begin) for plan in plans)
        positions = np.arange(begin, min(end, begin + period))
        found = []
        for plan, code in zip(plans, codes, strict=True):
            source, number = plan.schedule.locate(positions)
            found.append(np.stack([code[source], number]))
        (others,) = np.nonzero((found[0] != found[1]).any(axis=0))
        if len(others):
            return begin + int(others[0])
    return None


def why_not(before: Plan, after: Plan, windows: int) -> str | None:
    """What keeps a run that has read so many windows of one plan from going on with another, and
    what to do; None where nothing does."""
    position = first_difference(before, after, windows)
    if position is None:
        return None
    for key in SAME:
        if getattr(before, key) != getattr(after, key):
            return (
                f"`{key}` was {getattr(before, key)}, now {getattr(after, key)}; put the former "
                "value back"
            )
    was, now = (_source_at(plan, position) for plan in (before, after))
    tokens = windows * before.sequence_length
    later = (
        f"The run has read {windows:,} windows, and what is new may begin after them: in a phase "
        f"that follows one with `until: {tokens}`, or more"
    )
    same_name = [source for source in after.sources if source.name == was.name]
    if same_name and same_name[0].selection == was.selection and same_name[0].order != was.order:
        return (
            f"the windows of source {was.name!r} are shuffled otherwise: they were packed by an "
            "earlier version, and are packed again since; start a new run"
        )
    if same_name and _key(same_name[0]) != _key(was):
        return (
            f"source {was.name!r} has other documents now (selection {was.selection}, now "
            f"{same_name[0].selection}): its `where`, its corpus, `unique`, `prefer`, edits or "
            "held-out text changed; put the former back, with weight 0 in later phases, and give "
            f"the changed one as a source of another name. {later}"
        )
    if not any(_key(source) == _key(was) for source in after.sources):
        return (
            f"source {was.name!r} is gone, of which the run has read windows; put it back, with "
            f"weight 0 in later phases. {later}"
        )
    return (
        f"window {position:,} came from source {was.name!r}, and would come from {now.name!r}: the "
        f"weights, phases or order of sources before it changed; put the former back. {later}"
    )


def _source_at(plan: Plan, position: int) -> PlannedSource:
    return plan.sources[int(plan.schedule.locate(np.array([position]))[0][0])]


def _codes(*plans: Plan) -> list[np.ndarray]:
    """A number for each source of each plan, equal for equal windows."""
    known: dict[Hashable, int] = {}
    found = []
    for plan in plans:
        twice = Counter[Hashable]()  # a selection that two sources read has two cursors
        codes = []
        for source in plan.sources:
            key = _key(source)
            codes.append(known.setdefault((key, twice[key]), len(known)))
            twice[key] += 1
        found.append(np.array(codes))
    return found


def _key(source: PlannedSource) -> Hashable:
    return source.selection, source.windows, source.parts_per_group, source.order


def _period_at(plan: Plan, position: int) -> int:
    phase = int(np.searchsorted(plan.schedule.begins, position, side="right")) - 1
    return plan.schedule.periods[phase].period
