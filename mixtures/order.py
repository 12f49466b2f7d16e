"""Which window of a source comes next: two permutations per epoch, of shards and of windows.

First groups of packed parts are permuted, then the windows inside a group: a global permutation
would touch a random shard with every window, and no cache of remote shards could hold that. How
large a group is, `shuffle` of a mixture says; without it all parts are one. Nothing is stored: the
order is a function of (seed, epoch, index).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mixtures.permutation import derive_seed, permute


def epoch_seed(seed: int, selection: str, order: str, epoch: int) -> int:
    """The seed of one epoch of a source.

    Args:
        seed: of the mixture.
        selection, order: of the packed windows (packed.py). Those without `order` were packed by an
            earlier version, which took the name of the selection, and keep their order.
    """
    return derive_seed(seed, order or selection, epoch)


def epoch_order(
    index: np.ndarray, windows: tuple[int, ...], parts_per_group: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Part and window in that part, for places `index` (0 <= index < sum(windows)) of one epoch."""
    sizes, first_of_group, borders, order = _groups(windows, parts_per_group, seed)
    place = np.searchsorted(borders, index, side="right")  # which group in the order of this epoch
    window = np.empty_like(index)
    for at in np.unique(place):
        group, here = int(order[at]), place == at
        inside = index[here] - (borders[at - 1] if at else 0)
        shuffled = permute(inside, int(sizes[group]), derive_seed(seed, "windows", group))
        window[here] = shuffled + first_of_group[group]
    ends, firsts = _borders(windows)
    part = np.searchsorted(ends, window, side="right")
    return part, window - firsts[part]


def group_at(
    index: int, windows: tuple[int, ...], parts_per_group: int, seed: int
) -> tuple[range, int]:
    """The parts of the group that place `index` of an epoch falls into, and the place where the
    next group begins."""
    _, _, borders, order = _groups(windows, parts_per_group, seed)
    place = int(np.searchsorted(borders, index, side="right"))
    first = int(order[place]) * parts_per_group
    return range(first, min(first + parts_per_group, len(windows))), int(borders[place])


def parts_until(count: int, windows: tuple[int, ...], parts_per_group: int, seed: int) -> list[int]:
    """The parts that the first `count` places of an epoch may be in, ascending."""
    if count >= sum(windows):
        return list(range(len(windows)))
    _, _, borders, order = _groups(windows, parts_per_group, seed)
    num_groups = int(np.searchsorted(borders, count, side="left")) + 1 if count else 0
    firsts = (order[:num_groups] * parts_per_group).tolist()
    return sorted(
        part
        for first in firsts
        for part in range(first, min(first + parts_per_group, len(windows)))
    )


@lru_cache(maxsize=1024)
def _groups(
    windows: tuple[int, ...], parts_per_group: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Windows of each group, its first window, ends of the groups in this epoch's order, order."""
    sizes = np.add.reduceat(np.array(windows), np.arange(0, len(windows), parts_per_group))
    order = permute(np.arange(len(sizes)), len(sizes), derive_seed(seed, "groups"))
    return sizes, np.cumsum(sizes) - sizes, np.cumsum(sizes[order]), order


@lru_cache(maxsize=1024)
def _borders(windows: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Where the windows of each part end and begin, in the order of parts."""
    ends = np.cumsum(windows)
    return ends, ends - np.array(windows)
