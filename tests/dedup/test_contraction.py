"""Large-star and small-star against components by definition, in any number of partitions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from dedup import contraction
from dedup.clusters import streamed_components, united
from dedup.contraction import Records

NODES = st.integers(0, 40)
EDGES = st.lists(st.tuples(NODES, NODES).filter(lambda edge: edge[0] != edge[1]), max_size=60)
Edges = npt.NDArray[np.uint64]


def in_rounds(edges: Edges, num: int = 1) -> tuple[Records, list[int]]:
    """Stars of these edges, by document, and how many edges there were before and after each
    round; each of `num` owners sees the records of its names alone."""
    names = contraction.scattered(edges)
    told = [contraction.to_both(names[k::num, 0], names[k::num, 1]) for k in range(num)]
    sizes, changed = [len(contraction.merged(told).to) // 2], 1
    while changed:
        changed = 0
        for star in (contraction.large_star, contraction.small_star):
            made = [star(mine) for mine in dealt(told, num)]
            told, changed = [records for records, _ in made], changed + sum(n for _, n in made)
        sizes.append(len(contraction.merged(told).to) // 2)
    found = contraction.merged([contraction.stars(mine) for mine in dealt(told, num)])
    return found, sizes


def dealt(told: list[Records], num: int) -> list[Records]:
    everything = contraction.merged(told)
    owner = everything.to % np.uint64(num)
    return [Records(*(side[owner == k] for side in everything)) for k in range(num)]


@given(EDGES, st.integers(1, 4))
def test_stars_are_the_components_of_one_union_find(edges: list[tuple[int, int]], num: int) -> None:
    array = np.array(edges, np.uint64).reshape(-1, 2)
    stars, sizes = in_rounds(array, num)
    docs = contraction.gathered(stars.to)
    order = np.argsort(docs)
    expected = streamed_components(lambda: [array])
    assert [docs[order].tolist(), stars.other[order].tolist()] == [e.tolist() for e in expected]
    assert sizes == sorted(sizes, reverse=True)


def test_rounds_of_a_chain_grow_with_the_logarithm_of_its_length() -> None:
    rounds = {}
    for length in (100, 1_000, 10_000, 100_000):
        chain = np.arange(length, dtype=np.uint64)
        stars, sizes = in_rounds(np.stack([chain[:-1], chain[1:]], axis=1))
        assert len(np.unique(stars.other)) == 1
        assert max(sizes) == length - 1
        rounds[length] = len(sizes) - 1
    assert rounds == {100: 7, 1_000: 9, 10_000: 12, 100_000: 15}


def test_a_star_and_a_clique_take_two_rounds_and_one_to_know() -> None:
    star = np.array([(0, k) for k in range(1, 2_000)], np.uint64)
    clique = np.array([(a, b) for a in range(60) for b in range(a)], np.uint64)
    assert len(in_rounds(star)[1]) - 1 <= 3
    stars, sizes = in_rounds(clique)
    assert (len(sizes) - 1 <= 3, sizes[-1], len(stars.to)) == (True, 59, 60)


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_names_are_a_bijection(docs: list[int]) -> None:
    given_docs = np.array(docs, np.uint64)
    names = contraction.scattered(given_docs)
    assert contraction.gathered(names).tolist() == docs
    assert len(set(names.tolist())) == len(set(docs))


def test_names_spread_evenly() -> None:
    names = contraction.scattered(np.arange(100_000, dtype=np.uint64) | np.uint64(7 << 32))
    counts = np.bincount((names >> np.uint64(61)).astype(np.int64), minlength=8)
    assert abs(counts - 12_500).max() < 500


@given(EDGES)
def test_united_numbers_are_named_by_the_smallest(edges: list[tuple[int, int]]) -> None:
    array = np.array(edges, np.int32).reshape(-1, 2)
    found, smallest = united(array[:, 0], array[:, 1], 41)
    groups = {node: node for edge in edges for node in edge}
    for _ in groups:
        for a, b in edges:
            groups[a] = groups[b] = min(groups[a], groups[b])
    assert dict(zip(found.tolist(), smallest.tolist(), strict=True)) == groups
