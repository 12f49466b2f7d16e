"""Where the windows of a run stand: position -> source, epoch, part, window.

All of it is arithmetic over the plan, so any position is as near as the first one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain

import numpy as np

from mixtures.order import epoch_order, epoch_seed, group_at
from mixtures.plan import Plan, PlannedSource
from pipeline.objects import is_url

# Positions resolved together: a call costs 1 ms for 512 and 3 ms for 4,096, which fill 500 kB. A
# look-ahead, not an index: any block is computed from its number alone.
BLOCK = 4_096
BLOCKS = 4  # kept: of a reader, and of questions that are asked meanwhile
SOON = 1 << 16  # positions: a source without a window among so many need not be fetched yet
PartOf = tuple[str, int]  # packed folder, part


@dataclass(frozen=True)
class Place:
    """Where windows stand: arrays of equal length."""

    source: np.ndarray  # index in plan.sources
    epoch: np.ndarray
    part: np.ndarray
    window: np.ndarray  # in that part


class Places:
    """The places of a plan, resolved a block at a time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._block = lru_cache(BLOCKS)(partial(_located, plan))
        self._listed = lru_cache(BLOCKS)(partial(_listed, self._block))

    def arrays(self, position: int, count: int) -> Place:
        """The places of the windows position .. position + count - 1.

        Raises:
            IndexError: the plan has fewer; says the remedy.
        """
        numbers, begin = self._blocks(position, count)
        blocks = [self._block(number) for number in numbers]
        found = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
        return Place(*found[:, begin : begin + count])

    def rows(self, position: int, count: int) -> list[tuple[int, int, int]]:
        """(source, part, window) of each: lists give a few in a tenth of the time of arrays."""
        numbers, begin = self._blocks(position, count)
        columns = self._listed(numbers[0])
        if len(numbers) > 1:
            blocks = zip(*map(self._listed, numbers), strict=True)
            columns = [list(chain.from_iterable(block)) for block in blocks]
        source, _, part, window = (column[begin : begin + count] for column in columns)
        return list(zip(source, part, window, strict=True))

    def _blocks(self, position: int, count: int) -> tuple[range, int]:
        """The blocks that these positions are in, and where in them the first one is."""
        end = position + count
        if position < 0 or end > self._plan.num_windows:
            raise IndexError(
                f"windows {position} to {end - 1}: the plan has {self._plan.num_windows} windows "
                f"({self._plan.tokens:,} tokens); make it again with more `--tokens`"
            )
        first, begin = divmod(position, BLOCK)
        return range(first, max(position, end - 1) // BLOCK + 1), begin


def _located(plan: Plan, block: int) -> np.ndarray:
    """Places of a block of positions: int64 [4, BLOCK or what is left], in the order of `Place`."""
    end = min((block + 1) * BLOCK, plan.num_windows)
    source, number = plan.schedule.locate(np.arange(block * BLOCK, end))
    epoch, part, window = (np.empty_like(number) for _ in range(3))
    for index in np.unique(source):
        planned, here = plan.sources[index], source == index
        epoch[here], inside = np.divmod(number[here], planned.num_windows)
        for turn in np.unique(epoch[here]):
            now = here & (epoch == turn)
            part[now], window[now] = epoch_order(
                inside[epoch[here] == turn],
                planned.windows,
                planned.parts_per_group,
                _seed(plan, planned, int(turn)),
            )
    return np.stack([source, epoch, part, window])


def _listed(block: Callable[[int], np.ndarray], number: int) -> list[list[int]]:
    columns: list[list[int]] = block(number).tolist()
    return columns


def coming(plan: Plan, position: int) -> tuple[list[PartOf], list[PartOf]]:
    """The parts of stores that a reader at a position is in, and those that come next: of each
    source the group of parts that its next window is in, and the group after it."""
    ends = min(position + SOON, plan.num_windows), plan.num_windows
    cursors, soon_ends, all_ends = (
        plan.schedule.windows_until(at).tolist() for at in (position, *ends)
    )
    now: list[PartOf] = []
    soon: list[PartOf] = []
    for at, source in enumerate(plan.sources):
        if not is_url(source.folder) or cursors[at] == soon_ends[at]:
            continue
        here, begin = _group(plan, source, cursors[at])
        now += [(source.folder, number) for number in here]
        if begin < all_ends[at]:
            after, _ = _group(plan, source, begin)
            soon += [(source.folder, number) for number in after]
    return now, soon


def _group(plan: Plan, source: PlannedSource, number: int) -> tuple[range, int]:
    """The parts of the group that a window of a source is in, and the first window after it;
    windows counted over epochs."""
    epoch, inside = divmod(number, source.num_windows)
    seed = _seed(plan, source, epoch)
    parts, end = group_at(inside, source.windows, source.parts_per_group, seed)
    return parts, epoch * source.num_windows + end


def _seed(plan: Plan, source: PlannedSource, epoch: int) -> int:
    return epoch_seed(plan.seed, source.selection, source.order, epoch)
