"""Sketches agree as often as the formula says; edges join what the definition joins."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup import sketches
from dedup.clusters import components
from dedup.minhash import signatures


def test_a_bit_of_each_value() -> None:
    values = np.array([[0, 1, 2, 1], [1, 1, 1, 1]], np.uint32)  # 0x9E3779B1 has bit 31 set
    assert sketches.sketches(values).tolist() == [[0b1010], [0b1111]]
    assert sketches.sketches(np.ones((1, 65), np.uint32)).tolist() == [[2**64 - 1, 1]]
    assert sketches.sketches(np.empty((0, 128), np.uint32)).shape == (0, 2)


def test_most_different() -> None:
    thresholds = [(128, 0.8), (128, 1.0), (1024, 0.8), (8, 0.8)]  # of 8, no pair is refused
    assert [sketches.most_different(*values) for values in thresholds] == [27, 0, 141, 5]


def test_shared() -> None:
    keys = np.array([1, 2, 2, 3, 4, 4, 4], np.uint64)
    assert sketches.shared(keys).tolist() == [False, True, True, False, True, True, True]
    assert sketches.shared(keys[:1]).tolist() == [False]
    assert sketches.shared(keys[:0]).tolist() == []


def test_what_shares_a_key_is_joined_when_it_is_alike() -> None:
    keys = np.array([1, 1, 1, 1, 2, 2, 3, 3], np.uint64)
    docs = np.array([10, 11, 15, 16, 3, 9, 4, 5], np.uint64)
    bits = np.array([[0], [0b111], [0b1], [0b111], [0], [0b1], [0], [0xFF]], np.uint64)
    found = sketches.similar_edges(keys, docs, bits, 1)
    assert found.tolist() == [[10, 15], [11, 16], [3, 9]]
    found = sketches.similar_edges(keys, docs, bits, 2)
    assert found.tolist() == [[10, 15], [11, 15], [11, 16], [3, 9]]
    assert sketches.similar_edges(keys[:0], docs[:0], bits[:0], 1).shape == (0, 2)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 15)), max_size=24), st.integers(0, 3))
def test_edges_span_what_all_pairs_would(records: list[tuple[int, int]], most: int) -> None:
    records = sorted(records)
    keys, bits = np.array(records, np.uint64).reshape(-1, 2).T
    found = sketches.similar_edges(keys, np.arange(len(keys), dtype=np.uint64), bits[:, None], most)
    pairs = [
        (a, b)
        for a, b in itertools.combinations(range(len(records)), 2)
        if keys[a] == keys[b] and int(bits[a] ^ bits[b]).bit_count() <= most
    ]
    assert len(found) < max(1, len(records))
    for one, other in zip(
        components(found), components(np.array(pairs, np.uint64).reshape(-1, 2)), strict=True
    ):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("copies", [1, 3])
def test_a_key_of_too_many_sketches_is_one_component(copies: int) -> None:
    """However often each stands there, and in whatever order."""
    random = np.random.default_rng(copies)
    for num, components_of_copies in ((sketches.MAX_COMPARED, sketches.MAX_COMPARED), (257, 1)):
        values = np.repeat(random.permutation(num), copies)
        bits = random.permutation(values).astype(np.uint64)[:, None]
        docs = np.arange(len(bits), dtype=np.uint64)
        edges = sketches.similar_edges(np.zeros(len(bits), np.uint64), docs, bits, 0)
        assert len(edges) == len(bits) - components_of_copies


@pytest.mark.parametrize("jaccard", [0.0, 0.2, 0.5, 0.8, 1.0])
def test_bits_agree_as_often_as_the_formula_says(jaccard: float) -> None:
    """1,000 planted pairs of 200 shingles; tolerance: 4 standard deviations of the share."""
    num_pairs, union = 1000, 200
    shared = round(jaccard * union)
    hashes = np.random.default_rng(7).integers(0, 2**64, (num_pairs, union), dtype=np.uint64)
    left = hashes[:, : shared + (union - shared) // 2]
    right = np.concatenate([hashes[:, :shared], hashes[:, left.shape[1] :]], axis=1)
    a, b = (
        sketches.sketches(signatures(side.ravel(), np.arange(num_pairs + 1) * side.shape[1], 128))
        for side in (left, right)
    )
    different = float(np.bitwise_count(a ^ b).sum()) / (128 * num_pairs)
    expected = (1 - jaccard) / 2
    # values of one text depend on each other a little; 4 deviations of independent bits still hold
    assert abs(different - expected) <= 4 * (expected * (1 - expected) / (128 * num_pairs)) ** 0.5
