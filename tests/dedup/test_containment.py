"""Keys, hits and proposals of texts inside others, against their definitions in plain Python."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup import containment
from dedup.shingles import mix, shingles

Texts = list[list[int]]  # sorted distinct hashes of each text


def packed(texts: Texts) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, texts)])
    return np.array([h for text in texts for h in text], np.uint64), offsets


def records(texts: Texts, words: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys and hits of texts that are documents 0, 1, ...; sorted by key."""
    keys, rows = containment.keys_of(*packed(texts))
    hits, of = containment.hits_of(*packed(texts), words)
    both, docs = np.concatenate([keys, hits]), np.concatenate([rows, of]).astype(np.uint64)
    order = np.argsort(both, kind="stable")
    return both[order], docs[order], (np.arange(len(both)) < len(keys))[order]


def filter_of(texts: Texts) -> np.ndarray:
    keys, _ = containment.keys_of(*packed(texts))
    words = containment.make_filter(len(keys))
    containment.mark(keys, words)
    return words


def pairs(texts: Texts, threshold: float) -> tuple[set[tuple[int, int]], int]:
    """Verified pairs (inside, holder) as the join finds them, and how many were compared."""
    words = filter_of(texts)
    sizes = np.array([len(text) for text in texts], np.int64)
    keys, docs, is_key = records(texts, words)
    of = docs.astype(np.int64)
    lots = of.astype(np.uint64)  # contents differ
    found = containment.propose(keys, docs, is_key, sizes[of].astype(np.uint32), lots)
    num_keys = containment.num_keys(sizes)[found.inner.astype(np.int64)]
    good = containment.chosen(found, num_keys, threshold)
    i, j = found.inner[good].astype(np.int64), found.outer[good].astype(np.int64)
    shared = containment.num_shared(*packed(texts), *packed(texts), i, j)
    good = shared / sizes[i] >= threshold
    return set(zip(i[good].tolist(), j[good].tolist(), strict=True)), len(i)


def definition(texts: Texts, threshold: float) -> set[frozenset[int]]:
    found = set()
    for i, a in enumerate(texts):
        for j, b in enumerate(texts):
            long = len(b) >= len(a) >= containment.MIN_SHINGLES
            if i != j and long and len(set(a) & set(b)) >= threshold * len(a):
                found.add(frozenset((i, j)))
    return found


def draw(pick: random.Random, num: int) -> list[int]:
    return sorted({pick.getrandbits(64) for _ in range(num)})


def quoted(pick: random.Random, text: list[int], share: float, others: int) -> list[int]:
    """A text that has so much of another one, and so many hashes of its own."""
    return sorted({*pick.sample(text, math.ceil(share * len(text))), *draw(pick, others)})


def test_keys_are_the_lowest_hashes_mixed_and_short_texts_have_none() -> None:
    pick = random.Random(1)
    texts = [draw(pick, n) for n in (0, 8, 9, 16, 40)]
    keys, rows = containment.keys_of(*packed(texts))
    assert np.bincount(rows, minlength=5).tolist() == [0, 0, 9, 16, 16]
    assert keys.tolist() == [int(mix(np.uint64(h))) for text in texts[2:] for h in text[:16]]
    assert containment.num_keys(np.array([0, 8, 9, 16, 40])).tolist() == [0, 0, 9, 16, 16]


def test_hits_are_what_is_a_key_of_another_text_and_few_others() -> None:
    pick = random.Random(2)
    texts = [draw(pick, 300) for _ in range(400)]
    holder = sorted({*texts[0], *texts[1], *draw(pick, 5_000)})
    words = filter_of(texts)
    hits, rows = containment.hits_of(*packed([texts[2], holder]), words)
    known = {int(mix(np.uint64(h))) for text in texts[:2] for h in text[:16]}
    own = {int(mix(np.uint64(h))) for h in holder[:16]}
    found = set(hits[rows == 1].tolist())
    assert known - own <= found
    assert not own & found
    assert len(found - known) < 0.03 * len(holder)  # 1.5 % with 8 bits set of 64 or so
    assert (rows == 0).sum() < 0.03 * 300  # its own keys are not among its hits
    assert len(words) == 2_048  # 6,400 keys of 16 bits, to a power of two


@pytest.mark.parametrize("threshold", [0.8, 0.9, 1.0])
def test_all_that_is_contained_is_found_by_the_chance_that_is_computed(threshold: float) -> None:
    """Pairs at the threshold itself, texts of 9 to 400 shingles in holders ten times as long."""
    pick = random.Random(3)
    inside = [draw(pick, pick.randint(9, 400)) for _ in range(1_500)]
    holders = [quoted(pick, text, threshold, 10 * len(text)) for text in inside]
    found, compared = pairs([*inside, *holders], threshold)
    true = {(i, 1_500 + i) for i in range(1_500)}
    assert found <= true
    chance = containment.proposed(threshold, threshold)
    missed, expected = len(true - found), 1_500 * (1 - chance)
    assert missed <= expected + 4 * math.sqrt(expected) + 1
    assert compared < 1_600  # texts that share nothing are not looked at


@pytest.mark.parametrize("real", [0.5, 0.7])
def test_what_is_contained_less_is_proposed_as_often_as_computed(real: float) -> None:
    pick = random.Random(4)
    inside = [draw(pick, 300) for _ in range(1_000)]
    holders = [quoted(pick, text, real, 2_000) for text in inside]
    found, compared = pairs([*inside, *holders], 0.9)
    chance = containment.proposed(real, 0.9)
    assert found == set()
    assert abs(compared - 1_000 * chance) < 4 * math.sqrt(1_000 * chance * (1 - chance))


def test_chances() -> None:
    assert [containment.needed(n, 0.9) for n in (1, 4, 9, 16)] == [1, 1, 5, 10]
    chances = [round(containment.proposed(c, 0.9), 4) for c in (0.5, 0.7, 0.8, 0.9, 0.95)]
    assert chances == [0.2272, 0.8247, 0.9733, 0.9995, 1.0]
    assert min(containment.proposed(0.9, 0.9, n) for n in range(3, 17)) > 0.997


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_texts_as_defined(data: st.DataObject) -> None:
    """Small texts over a small alphabet, so that all sorts of overlap come; whole containment, for
    which no chance is left."""
    hashes = [int(mix(np.uint64(n))) for n in range(60)]
    texts = data.draw(
        st.lists(
            st.sets(st.sampled_from(hashes), max_size=40).map(sorted),
            max_size=12,
            unique_by=tuple,
        )
    )
    found, _ = pairs(texts, 1.0)
    assert {frozenset(pair) for pair in found} == definition(texts, 1.0)
    assert all(len(texts[i]) <= len(texts[j]) for i, j in found)


def test_a_key_of_many_texts_proposes_the_longest_alone() -> None:
    """Two thousand texts with one footer, two fifths of each: few are compared, with the longest. A
    text that all of them hold is found in these."""
    pick = random.Random(5)
    footer = draw(pick, 40)
    texts = [sorted({*footer, *draw(pick, 60 + n % 50)}) for n in range(2_000)]
    found, compared = pairs(texts, 0.9)
    assert found == set()
    assert compared < 500
    found, _ = pairs([*texts, footer], 0.9)
    assert {i for i, _ in found} == {2_000}
    assert len(found) == containment.MAX_HOT
    assert {len(texts[j]) for _, j in found} == {149}


def test_of_a_page_that_is_mostly_template_its_own_part_is_asked_for() -> None:
    """70 % of each of 500 pages is one template; each stands in a book of its own."""
    pick = random.Random(6)
    template = draw(pick, 140)
    pages = [sorted({*template, *draw(pick, 60)}) for _ in range(500)]
    books = [sorted({*page, *draw(pick, 2_000)}) for page in pages]
    found, compared = pairs([*pages, *books], 0.9)
    true = {(n, 500 + n) for n in range(500)}
    assert found <= true
    assert len(found) >= 495
    assert compared < 500 * (containment.MAX_HOT + 4)


def test_equal_sizes_are_one_pair_and_equal_contents_none() -> None:
    pick = random.Random(7)
    text = draw(pick, 20)
    other = sorted({*text[:19], *draw(pick, 1)})
    found, _ = pairs([text, other], 0.9)
    assert found == {(1, 0)}  # of equal ones the higher lot is inside
    keys, docs, is_key = records([text, text], filter_of([text]))
    lots, sizes = np.zeros(len(keys), np.uint64), np.full(len(keys), 20, np.uint32)
    assert len(containment.propose(keys, docs, is_key, sizes, lots).inner) == 0


@given(st.lists(st.integers(0, 400), max_size=60), st.lists(st.integers(0, 400), max_size=300))
@settings(deadline=None)
def test_what_two_texts_share(a: list[int], b: list[int]) -> None:
    left, right = sorted(set(a)), sorted(set(b))
    zero = np.zeros(1, np.int64)
    for one, other in ((left, right), (right, left), ([7], list(range(400)))):
        found = containment.num_shared(*packed([one]), *packed([other]), zero, zero)
        assert found.tolist() == [len(set(one) & set(other))]


def test_nothing_at_all() -> None:
    empty = packed([])
    assert [len(column) for column in containment.keys_of(*empty)] == [0, 0]
    words = filter_of([])
    assert [len(column) for column in containment.hits_of(*empty, words)] == [0, 0]
    assert pairs([], 0.9) == (set(), 0)
    assert pairs([[], [1]], 0.9) == (set(), 0)


def test_a_traditional_copy_and_other_spacing_are_the_same_shingles() -> None:
    simplified = "汉语的书面语言里，传统字形和简化字形写的是同一个词。学习的人都应该知道这件事情。"
    traditional = "漢語的書面語言裡，傳統字形和簡化字形寫的是同一個詞。學習的人都應該知道這件事情。"
    hashes, offsets = shingles(pa.array([simplified, traditional]))
    texts = [part.tolist() for part in np.split(hashes, offsets[1:-1])]
    assert texts[0] == texts[1]
    assert len(texts[0]) > containment.MIN_SHINGLES
