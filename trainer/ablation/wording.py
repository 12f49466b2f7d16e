"""Verdicts and numbers in words, for people."""

from __future__ import annotations

import math

from pipeline.amounts import counted
from trainer.ablation.results import Outcome
from trainer.ablation.statistics import MIN_ITEMS, MIN_SEEDS, Difference
from trainer.ablation.study import Study


def sentence(study: Study, outcome: Outcome, arm: str) -> str:
    """The verdict on an arm, in one plain sentence."""
    d, base, verdict = outcome.primary.differences[arm], study.baseline, outcome.verdicts[arm]
    if d.low is None:
        documents = counted(d.num_items, "held-out document")
        return (
            f"Undecided: {counted(len(d.per_seed), 'seed')} and {documents} say nothing "
            f"certain about “{arm}” against “{base}”; give at least {MIN_SEEDS} seeds, and "
            f"{MIN_ITEMS} documents in each language."
        )
    mean = f"mean of {' and '.join(study.settings.primary.languages)}"
    bounds = f"{percent(outcome.confidence)} interval {interval(d)}"
    if verdict in ("better", "worse"):
        share = abs(d.estimate) / (math.fsum(outcome.primary.bits[base]) / len(d.per_seed))
        return (
            f"“{arm}” is {verdict} than “{base}”: it needs {abs(d.estimate):.4f} bits per byte "
            f"({share:.1%}) {'less' if verdict == 'better' else 'more'} for held-out text "
            f"({mean}; {bounds})."
        )
    if verdict == "undecided":
        return (
            f"Undecided: the difference between “{arm}” and “{base}” is {signed(d.estimate)} bits "
            f"per byte on held-out text, within the noise ({mean}; {bounds})."
        )
    better, worse = (
        [row.name for row in outcome.sets if row.differences[arm].verdict == side]
        for side in ("better", "worse")
    )
    return (
        f"Undecided, because it depends on the held-out set: “{arm}” is better than “{base}” on "
        f"{', '.join(better) or 'all together'} and worse on {', '.join(worse) or 'all together'} "
        f"({signed(d.estimate)} bits per byte, {mean}; {bounds})."
    )


DOMINATES = 2 / 3  # of the difference: less than that is not "most of it" to any reader


def dominant_set(outcome: Outcome, arm: str) -> str:
    """What follows the verdict when one held-out set of several makes most of the difference."""
    parts, whole = outcome.contributions[arm], outcome.primary.differences[arm]
    name, part = max(parts.items(), key=lambda item: item[1] * whole.estimate)
    if len(parts) < 2 or whole.verdict == "undecided" or part / whole.estimate < DOMINATES:
        return ""
    [row] = [row for row in outcome.sets if row.name == name]
    return (
        f"Most of it comes from one held-out set: “{name}” ({counted(row.num_items, 'document')}) "
        f"adds {signed(part)} of {signed(whole.estimate)}. Look at such text before you generalize."
    )


def signed(value: float) -> str:
    """A difference in bits per byte; what rounds to zero has no sign."""
    text = f"{value:+.4f}".replace("-", "−")
    return "0.0000" if text[1:] == "0.0000" else text


def interval(d: Difference) -> str:
    """Both ends, a dash where there is no interval."""
    return "–" if d.low is None or d.high is None else f"{signed(d.low)} to {signed(d.high)}"


def percent(share: float) -> str:
    return f"{share * 100:.3g}%"
