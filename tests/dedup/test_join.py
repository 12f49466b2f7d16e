"""The join against its plain definition: Jaccard of every pair, by sets."""

from __future__ import annotations

from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup.join import similarity_join

Hashes = npt.NDArray[np.uint64]
Pairs = dict[tuple[int, int], np.float32]


def flat(sets: list[set[int]]) -> tuple[Hashes, npt.NDArray[np.int64]]:
    hashes = np.array([h for s in sets for h in sorted(s)], np.uint64)
    return hashes, np.cumsum([0, *map(len, sets)])


def jaccard(a: set[int], b: set[int]) -> float:
    return len(a & b) / len(a | b) if a and b else 0.0


def defined(sets: list[set[int]], threshold: float, order: list[int]) -> tuple[list[int], Pairs]:
    """Whom the rule keeps, and all pairs."""
    kept: list[int] = []
    for x in order:
        if not any(jaccard(sets[x], sets[y]) >= threshold for y in kept):
            kept.append(x)
    found = ((x, y, jaccard(sets[x], sets[y])) for x in order for y in order if x < y)
    return sorted(kept), {(x, y): np.float32(j) for x, y, j in found if j >= threshold}


# Copies of a template that lost some shingles and have some of their own, rare or shared by a few.
TEMPLATE = [2**60 + n for n in range(40)]
COPIES = st.lists(
    st.tuples(
        st.sets(st.sampled_from(TEMPLATE), max_size=12), st.sets(st.integers(0, 50), max_size=14)
    ).map(lambda both: (set(TEMPLATE) - both[0]) | both[1]),
    max_size=14,
)
SMALL = st.lists(st.sets(st.integers(0, 12), max_size=10), max_size=14)


@given(st.one_of(COPIES, SMALL), st.randoms(), st.floats(0.05, 1.0))
@settings(max_examples=300, deadline=None)
def test_as_the_definition_says(sets: list[set[int]], random: Random, threshold: float) -> None:
    order = random.sample(range(len(sets)), random.randint(0, len(sets)))
    kept, pairs = defined(sets, threshold, order)
    args = (*flat(sets), threshold, np.array(order, np.int64))
    assert np.flatnonzero(similarity_join(*args, greedy=True)[0]).tolist() == kept
    everyone, left, right, jaccards = similarity_join(*args, greedy=False)
    assert np.flatnonzero(everyone).tolist() == sorted(order)
    ends = zip(np.minimum(left, right).tolist(), np.maximum(left, right).tolist(), strict=True)
    assert dict(zip(ends, jaccards, strict=True)) == pairs
    assert len(left) == len(pairs)


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 1.0])
def test_a_jaccard_of_exactly_the_threshold_counts(threshold: float) -> None:
    for size in range(1, 120):
        shared = round(2 * size * threshold / (1 + threshold))
        sets = [set(range(size)), set(range(size - shared, 2 * size - shared))]
        kept = similarity_join(*flat(sets), threshold, np.array([1, 0]), greedy=True)[0]
        assert kept.tolist() == [jaccard(*sets) < threshold, True], (size, shared)


def copies(num: int, own: int) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """`num` sets of 100: of a template, and `own` that no other has."""
    rng = np.random.default_rng(0)
    template = np.tile(rng.integers(0, 2**64, 100 - own, np.uint64), (num, 1))
    sets = np.concatenate([template, rng.integers(0, 2**64, (num, own), np.uint64)], axis=1)
    return sets.ravel(), np.arange(num + 1) * 100


@pytest.mark.parametrize(("own", "num_kept"), [(5, 1), (11, 1), (12, 50_000)])
def test_a_large_cluster_is_joined_in_linear_time(own: int, num_kept: int) -> None:
    """Near-equal, at the threshold (89 / 111 = .802), and below it (88 / 112 = .786): 1.2e9 pairs,
    which took two minutes while each was looked at."""
    num = 50_000
    order = np.random.default_rng(1).permutation(num)
    kept = similarity_join(*copies(num, own), 0.8, order, greedy=True)[0]
    assert kept.sum() == num_kept
    assert kept[order[0]]


def test_a_threshold_out_of_range() -> None:
    for threshold in (0.0, 1.1):
        with pytest.raises(ValueError, match=f"threshold = {threshold}: a Jaccard similarity"):
            similarity_join(*flat([{1}]), threshold, np.array([0]), greedy=True)
