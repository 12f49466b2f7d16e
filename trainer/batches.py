"""The steps of a run: which windows each takes, a function of its settings and plan alone.

Imports no torch: `assay windows` and receipts of forgotten documents ask too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from mixtures.plan import Plan
from trainer.recipe import Ramp


@dataclass(frozen=True)
class Step:
    """One step of the run: a function of its number."""

    number: int  # from 1
    position: int  # of its first window
    windows: int
    tokens_before: int
    tokens: int  # seen after it
    last: bool

    def reaches(self, every: str | int) -> bool:
        """Whether a multiple of `every` tokens falls into it; "final": whether it is the last."""
        if self.last or isinstance(every, str):
            return self.last
        return self.crosses(every)

    def crosses(self, every: int) -> bool:
        return self.tokens // every > self.tokens_before // every


def steps(batch_tokens: int | Ramp, plan: Plan) -> list[Step]:
    """All steps of a run: whole batches, and what is left of the plan as the last one.

    A step takes the batch of the last entry of a ramp that it does not begin before.
    """
    length = plan.sequence_length
    sizes = ramp_windows(batch_tokens, length)
    result: list[Step] = []
    begin = at = 0
    while begin < plan.num_windows:
        while at + 1 < len(sizes) and sizes[at + 1][0] <= begin * length:
            at += 1
        end = min(begin + sizes[at][1], plan.num_windows)
        last = end == plan.num_windows
        number = len(result) + 1
        result.append(Step(number, begin, end - begin, begin * length, end * length, last))
        begin = end
    return result


def step_of(planned: Sequence[Step], position: int) -> Step:
    """The step that sees the window of a position."""
    return planned[bisect_right(planned, position, key=lambda step: step.position) - 1]


def most_windows(batch_tokens: int | Ramp, sequence_length: int) -> int:
    """Windows of the largest step of a run."""
    return max(windows for _, windows in ramp_windows(batch_tokens, sequence_length))


def ramp_windows(batch_tokens: int | Ramp, sequence_length: int) -> list[tuple[int, int]]:
    """(tokens from which on, windows of a step): those that the batch holds, at least one."""
    ramp = ((0, batch_tokens),) if isinstance(batch_tokens, int) else batch_tokens
    return [(begin, max(1, tokens // sequence_length)) for begin, tokens in ramp]


def told_rounding(batch_tokens: int | Ramp, sequence_length: int) -> list[str]:
    """What a step takes where `batch_tokens` is not whole windows, a line each."""
    ramp = ((0, batch_tokens),) if isinstance(batch_tokens, int) else batch_tokens
    return [
        f"`batch_tokens: {asked}` becomes {windows * sequence_length:,}: a step takes whole "
        f"windows, {windows:,} of {sequence_length:,} tokens"
        for (_, asked), (_, windows) in zip(
            ramp, ramp_windows(batch_tokens, sequence_length), strict=True
        )
        if windows * sequence_length != asked
    ]
