"""Components, forests and verified pairs, against plain definitions."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.bands import band_keys, key_records, sort_records
from dedup.clusters import (
    components,
    jaccard,
    spanning_forest,
    streamed_components,
    verified_pairs,
)
from dedup.minhash import signatures
from dedup.shingles import shingles
from dedup.sketches import most_different, similar_edges, sketches

EDGES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=20)
# Small universes make all overlaps and ties of sizes and frequencies likely.
SETS = st.lists(st.sets(st.integers(0, 15), max_size=12), max_size=10)


def _flat(sets: list[set[int]]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    hashes = np.array([h for s in sets for h in sorted(s)], np.uint64)
    return hashes, np.cumsum([0, *map(len, sets)])


def _edges(edges: list[tuple[int, int]]) -> npt.NDArray[np.uint64]:
    return np.array(edges, np.uint64).reshape(-1, 2)


def _groups(edges: list[tuple[int, int]]) -> dict[int, int]:
    """Node -> smallest node of its component, by spreading until nothing changes."""
    smallest = {node: node for edge in edges for node in edge}
    for _ in smallest:
        for a, b in edges:
            smallest[a] = smallest[b] = min(smallest[a], smallest[b])
    return smallest


@given(EDGES)
def test_components(edges: list[tuple[int, int]]) -> None:
    nodes, labels = components(_edges(edges))
    expected = _groups(edges)
    assert nodes.tolist() == sorted(expected)
    assert [int(nodes[label]) for label in labels] == [expected[n] for n in sorted(expected)]


@given(st.lists(st.lists(st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 9))] * 2))))
def test_components_of_edges_in_pieces(
    pieces: list[list[tuple[tuple[int, int], tuple[int, int]]]],
) -> None:
    """The same components as of all edges at once, whatever the pieces."""
    named = [_edges([(a[0] << 32 | a[1], b[0] << 32 | b[1]) for a, b in piece]) for piece in pieces]
    docs, labels = streamed_components(lambda: named)
    nodes, roots = components(np.concatenate([_edges([]), *named]))
    assert docs.tolist() == nodes.tolist()
    same = {(int(label), int(root)) for label, root in zip(labels, roots, strict=True)}
    assert len(same) == len(set(labels.tolist())) == len(set(roots.tolist()))


def test_components_of_large_names_and_of_nothing() -> None:
    part = 3 << 32
    nodes, labels = components(_edges([(part + 1, 7), (2**64 - 1, part), (part, 7)]))
    assert nodes.tolist() == [7, part, part + 1, 2**64 - 1]
    assert labels.tolist() == [0, 0, 0, 0]
    assert [a.tolist() for a in components(_edges([]))] == [[], []]


@given(EDGES)
def test_a_spanning_forest_keeps_components_without_cycles(edges: list[tuple[int, int]]) -> None:
    forest = spanning_forest(_edges(edges))
    expected = {
        n: c for n, c in _groups(edges).items() if any(n in e for e in edges if e[0] != e[1])
    }
    assert len(forest) == len(expected) - len(set(expected.values()))
    assert _groups([tuple(e) for e in forest.tolist()]) == expected


def test_jaccard() -> None:
    sets = [np.array(s, np.uint64) for s in ([1, 2, 3, 4], [3, 4, 5], [])]
    assert jaccard(sets[0], sets[1]) == 0.4
    assert jaccard(sets[0], sets[0]) == 1.0
    assert jaccard(sets[0], sets[2]) == jaccard(sets[2], sets[2]) == 0.0


@given(SETS, st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.75, 0.8, 1.0]))
def test_verified_pairs_are_all_pairs(sets: list[set[int]], threshold: float) -> None:
    expected = [
        (i, j, np.float32(len(a & b) / len(a | b)))
        for (i, a), (j, b) in itertools.combinations(enumerate(sets), 2)
        if a & b and len(a & b) / len(a | b) >= threshold
    ]
    assert list(zip(*verified_pairs(*_flat(sets), threshold), strict=True)) == expected


@given(SETS, st.permutations(range(10)))
def test_verified_pairs_do_not_depend_on_the_order(sets: list[set[int]], order: list[int]) -> None:
    order = [k for k in order if k < len(sets)]
    i, j, _ = verified_pairs(*_flat(sets), 0.5)
    a, b, _ = verified_pairs(*_flat([sets[k] for k in order]), 0.5)
    named = {frozenset((order[x], order[y])) for x, y in zip(a, b, strict=True)}
    assert named == {frozenset((x, y)) for x, y in zip(i.tolist(), j.tolist(), strict=True)}


def test_pairs_larger_than_a_block_are_counted_out() -> None:
    base = set(range(1000))
    sets = [base, base - set(range(100)), base - set(range(900, 1000)), base - set(range(201))]
    i, j, similarity = verified_pairs(*_flat(sets), 0.8)
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 2), (1, 3)]
    expected = np.array([0.9, 0.9, 0.8, 799 / 900], np.float32)
    assert similarity.tolist() == expected.tolist()


def test_a_thousand_members_of_a_thousand_shingles() -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(0, 2**64, 1000, dtype=np.uint64)
    members = np.tile(base, (1000, 1))
    changed = rng.random(members.shape) < 0.02
    members[changed] = rng.integers(0, 2**64, int(changed.sum()), dtype=np.uint64)
    members.sort(axis=1)
    verified_pairs(base[:5], np.array([0, 5]), 0.8)  # compiles
    i, _, similarity = verified_pairs(members.ravel(), np.arange(1001) * 1000, 0.8)
    assert len(i) == 499_500
    assert similarity[0] == np.float32(jaccard(members[0], members[1]))


def test_wrong_threshold_is_refused() -> None:
    with pytest.raises(ValueError, match=r"threshold = 1.5: a Jaccard similarity is above 0"):
        verified_pairs(*_flat([{1}]), 1.5)


def _near_pairs(texts: list[str], num_parts: int = 1) -> list[tuple[int, int]]:
    """From texts to verified pairs as the pipeline goes, text i being row i // n of part i % n."""
    parts = [shingles(pa.array(texts[p::num_parts])) for p in range(num_parts)]
    records, bits = [], []
    for part, (hashes, offsets) in enumerate(parts):
        signed = signatures(hashes, offsets, 128)
        records.append(key_records(band_keys(signed, 21, 6), np.diff(offsets) > 0, part))
        bits.append(sketches(signed))
    keys, docs = sort_records(*map(np.concatenate, zip(*records, strict=True)))
    places = [(int(doc) >> 32, int(doc) & 0xFFFFFFFF) for doc in docs]
    of_records = np.array([bits[part][row] for part, row in places])
    nodes, labels = components(similar_edges(keys, docs, of_records, most_different(128, 0.8)))
    pairs: list[tuple[int, int]] = []
    for label in np.unique(labels):
        members = [(int(doc) & 0xFFFFFFFF, int(doc) >> 32) for doc in nodes[labels == label]]
        sets = [
            parts[part][0][parts[part][1][row] : parts[part][1][row + 1]] for row, part in members
        ]
        i, j, _ = verified_pairs(np.concatenate(sets), np.cumsum([0, *map(len, sets)]), 0.8)
        names = [row * num_parts + part for row, part in members]
        pairs += [(names[a], names[b]) for a, b in zip(i, j, strict=True)]
    return sorted((min(pair), max(pair)) for pair in pairs)


def test_duplicates_meet_across_parts() -> None:
    """data-juicer PR #906: duplicates in different blocks were missed."""
    rng = np.random.default_rng(5)
    texts = [" ".join(f"w{k}" for k in rng.integers(0, 10**4, 60)) for _ in range(6)]
    texts += [texts[0] + " more", texts[3].upper(), "用" + texts[5]]
    expected = [(0, 6), (3, 7), (5, 8)]
    assert [_near_pairs(texts, num_parts) for num_parts in (1, 2, 5)] == [expected] * 3


def test_short_texts_meet_only_their_equals() -> None:
    """DataFlow PR #526: ["cat", "dog", "cat"] became ["cat"]. NeMo Curator #1216, data-juicer
    PR #1051: shorter than the window."""
    assert _near_pairs(["cat", "dog", "CAT", "hi", "ok", "猫", "", "", "！"]) == [(0, 2)]


def test_a_unique_corpus_has_no_pairs() -> None:
    """dclm #83: over 90 % of documents were judged duplicates of themselves."""
    rng = np.random.default_rng(3)
    words = [f"w{i}" for i in range(5000)]
    assert _near_pairs([" ".join(rng.choice(words, 80)) for _ in range(500)]) == []


def test_templates_are_no_duplicates() -> None:
    """marin #6854: 859,092 function calls that share a template became 2."""
    rng = np.random.default_rng(4)
    frame = " ".join(f"frame{i}" for i in range(60))
    fill = [" ".join(f"fill{k}" for k in rng.integers(0, 10**6, 40)) for _ in range(300)]
    assert _near_pairs([f"{frame} {text}" for text in fill]) == []
