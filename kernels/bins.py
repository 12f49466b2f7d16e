"""Best-fit-decreasing: items into bins of one capacity, each into the fullest bin that it fits.

The bins that have n places left are a stack, for each n; a binary tree over n says where the next
stack that is not empty stands. So an item costs log2(capacity) steps, whatever their number (Ding
et al. 2024, "Fewer Truncations Improve Language Modeling", 2404.10830, section 3).
"""

from __future__ import annotations

import numpy as np

from kernels.compile import kernel


@kernel
def best_fit(sizes: np.ndarray, capacity: int) -> np.ndarray:
    """Bin of each item, int64, numbered as they are opened.

    Args:
        sizes: int64, descending, 1 to `capacity`.
    """
    leaves = 1
    while leaves <= capacity:
        leaves *= 2
    some = np.zeros(2 * leaves, np.uint8)  # a node is 1 if a leaf below it is; leaf n: n left
    top = np.full(capacity + 1, -1, np.int64)  # of the stack of bins with n left
    under = np.empty(len(sizes), np.int64)  # the bin below a bin in its stack
    bins = np.empty(len(sizes), np.int64)
    num_bins = 0
    for item in range(len(sizes)):
        size = sizes[item]
        left = _least(some, leaves, size)
        if left < 0:
            chosen = num_bins
            num_bins += 1
            left = capacity
        else:
            chosen = top[left]
            top[left] = under[chosen]
            if top[left] < 0:
                _clear(some, leaves + left)
        bins[item] = chosen
        left -= size
        if left > 0:
            under[chosen] = top[left]
            top[left] = chosen
            at = leaves + left
            while at > 0 and some[at] == 0:
                some[at] = 1
                at //= 2
    return bins


@kernel
def _least(some: np.ndarray, leaves: int, size: int) -> int:
    """The smallest leaf from `size` on that is set; -1: none is."""
    at = leaves + size
    if some[at] == 0:
        while at > 1 and (at % 2 == 1 or some[at + 1] == 0):
            at //= 2
        if at <= 1:
            return -1
        at += 1
        while at < leaves:
            at *= 2
            if some[at] == 0:
                at += 1
    return at - leaves


@kernel
def _clear(some: np.ndarray, leaf: int) -> None:
    some[leaf] = 0
    at = leaf // 2
    while at > 0 and some[2 * at] == 0 and some[2 * at + 1] == 0:
        some[at] = 0
        at //= 2
