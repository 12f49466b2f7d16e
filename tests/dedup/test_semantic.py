from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.semantic import BLOCK, DIGITS, keep_unlike, unit


def by_definition(vectors: np.ndarray, threshold: float) -> list[int]:
    kept: list[int] = []
    for row, vector in enumerate(vectors):
        if all(round(float(vector @ vectors[other]), DIGITS) < threshold for other in kept):
            kept.append(row)
    return kept


def circle(*degrees: float) -> np.ndarray:
    radians = np.deg2rad(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def test_a_chain_keeps_both_ends() -> None:
    vectors = circle(0, 10, 20)  # cos 10 = .985, cos 20 = .940
    assert keep_unlike(vectors, 0.98).tolist() == [True, False, True]
    assert keep_unlike(vectors[[1, 0, 2]], 0.98).tolist() == [True, False, False]
    assert keep_unlike(vectors, 0.93).tolist() == [True, False, False]
    assert keep_unlike(vectors, 0.99).tolist() == [True, True, True]


def test_the_threshold_itself_is_a_copy() -> None:
    assert keep_unlike(circle(0, 60), 0.5).tolist() == [True, False]


def test_lengths_say_nothing_and_zero_is_like_nothing() -> None:
    vectors = unit(np.array([[3, 0], [0.1, 0], [0, 0], [0, 0]], np.float32))
    assert keep_unlike(vectors, 0.9).tolist() == [True, False, True, True]


def test_none_and_one() -> None:
    assert keep_unlike(np.zeros((0, 3), np.float32), 0.9).tolist() == []
    assert keep_unlike(circle(5), 0.9).tolist() == [True]


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.8, 0.95]))
def test_as_defined(seed: int, threshold: float) -> None:
    random = np.random.default_rng(seed)
    centres = unit(random.standard_normal((20, 8)).astype(np.float32))
    noise = random.standard_normal((200, 8)) * random.uniform(0, 0.5, (200, 1))
    vectors = unit((centres[random.integers(0, 20, 200)] + noise).astype(np.float32))
    assert np.flatnonzero(keep_unlike(vectors, threshold)).tolist() == by_definition(
        vectors, threshold
    )


@pytest.mark.parametrize("exact", [10**6, 1_000])
def test_planted_groups_over_several_blocks(exact: int) -> None:
    """One of each group stays, the first, also where cells of k-means are all that is looked at."""
    random = np.random.default_rng(1)
    groups = random.permutation(np.repeat(np.arange(1_500), 3))
    assert len(groups) > 4 * BLOCK
    centres = unit(random.standard_normal((1_500, 64)).astype(np.float32))
    vectors = unit(centres[groups] + 0.01 * random.standard_normal((4_500, 64)).astype(np.float32))
    first = np.zeros(4_500, bool)
    first[np.unique(groups, return_index=True)[1]] = True
    assert (keep_unlike(vectors, 0.9, exact=exact) == first).all()
