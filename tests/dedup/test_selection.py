"""Rule 2 of the design: keep unless a kept document forms a verified pair."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from dedup.clusters import verified_pairs
from dedup.selection import keep_unique, keep_unique_by_shingles

SETS = st.lists(st.sets(st.integers(0, 12), max_size=10), max_size=10)


def _ints(values: list[int]) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64)


def _kept(order: list[int], pairs: list[tuple[int, int]], num: int) -> list[int]:
    left, right = np.array(pairs, np.int64).reshape(-1, 2).T
    return np.flatnonzero(keep_unique(_ints(order), left, right, num)).tolist()


def _flat(sets: list[set[int]]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    hashes = np.array([h for s in sets for h in sorted(s)], np.uint64)
    return hashes, np.cumsum([0, *map(len, sets)])


def test_a_chain() -> None:
    a, b, c = 0, 1, 2
    chain = [(a, b), (b, c)]
    assert _kept([b, a, c], chain, 3) == [b]
    assert _kept([a, b, c], chain, 3) == [a, c]
    assert _kept([a, c, b], chain, 3) == [a, c]


def test_with_the_best_copy_outside_the_selection_the_others_decide() -> None:
    triangle = [(0, 1), (0, 2), (1, 2)]
    assert _kept([2, 1], triangle, 3) == [2]
    assert _kept([2, 1], [(0, 1), (0, 2)], 3) == [1, 2]


def test_no_pairs_no_losses() -> None:
    assert _kept([3, 0], [], 4) == [0, 3]
    assert _kept([], [(0, 1)], 2) == []
    assert _kept([], [], 0) == []


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7))), st.permutations(range(8)))
def test_the_kept_are_a_maximal_set_without_pairs(
    pairs: list[tuple[int, int]], order: list[int]
) -> None:
    pairs = [(i, j) for i, j in pairs if i != j]
    kept: list[int] = []
    for content in order:
        if not any((content, k) in pairs or (k, content) in pairs for k in kept):
            kept.append(content)
    assert _kept(order, pairs, 8) == sorted(kept)


@given(SETS, st.permutations(range(10)), st.sampled_from([0.3, 0.5, 0.8, 1.0]))
def test_by_shingles_is_the_same_rule(
    sets: list[set[int]], order: list[int], threshold: float
) -> None:
    ranked = _ints([k for k in order if k < len(sets)])
    left, right, _ = verified_pairs(*_flat(sets), threshold)
    expected = keep_unique(ranked, left, right, len(sets))
    assert keep_unique_by_shingles(ranked, *_flat(sets), threshold).tolist() == expected.tolist()


def test_a_chain_by_shingles() -> None:
    sets = [set(range(10)), set(range(1, 11)), set(range(2, 12))]  # .82, .82, ends .67
    found = [
        keep_unique_by_shingles(_ints(o), *_flat(sets), 0.8).tolist()
        for o in ([1, 0, 2], [0, 1, 2])
    ]
    assert found == [[False, True, False], [True, False, True]]


def test_a_hundred_thousand_members_stay_bounded() -> None:
    """A template of three shingles in every member, two of its own: no pair; then all equal."""
    num = 100_000
    rng = np.random.default_rng(0)
    own = rng.integers(10, 2**64, (num, 2), dtype=np.uint64)
    sets = np.concatenate([np.tile(np.arange(3, dtype=np.uint64), (num, 1)), np.sort(own)], axis=1)
    offsets = np.arange(num + 1) * 5
    order = np.arange(num)[::-1].copy()
    keep_unique_by_shingles(order[-1:], sets[0], offsets[:2], 0.8)  # compiles
    assert keep_unique_by_shingles(order, sets.ravel(), offsets, 0.8).sum() == num
    equal = np.tile(sets[0], num)
    assert np.flatnonzero(keep_unique_by_shingles(order, equal, offsets, 0.8)).tolist() == [num - 1]
