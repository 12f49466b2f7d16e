"""The index of held-out texts: what stands in it, and how much of a text is looked up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.postings import border, build_index, head, missing, needed

HASHES = st.one_of(st.integers(0, 30), st.integers(0, 2**64 - 1), st.just(2**64 - 1))
SETS = st.lists(st.sets(HASHES, max_size=25), max_size=5)


@pytest.mark.parametrize(
    ("num", "least", "expected"),
    [
        (1, 0.8, (0, 1, 1)),
        (4, 0.8, (0, 1, 1)),
        (5, 0.8, (1, 1, 2)),  # one of five may be missing: of the lowest two one is there
        (10, 0.8, (2, 2, 4)),
        (100, 0.8, (20, 13, 33)),
        (100, 0.07, (93, 7, 100)),  # 0.07 * 100 is 7.000000000000001
        (100, 1.0, (0, 13, 13)),
        (3, 1e-9, (2, 1, 3)),
    ],
)
def test_the_head_of_a_text(num: int, least: float, expected: tuple[int, int, int]) -> None:
    assert (missing(num, least), needed(num, least), head(num, least)) == expected


def test_heads_end_below_the_border() -> None:
    assert int(border(0.8)) == int((1 - 0.8 + 1 / 8 + 1 / 32) * 2**64)
    assert int(border(0.1)) == 2**64 - 1


@given(SETS, st.sampled_from([0.3, 0.8, 1.0]))
def test_an_index_has_every_hash_of_every_text(sets: list[set[int]], least: float) -> None:
    hashes = np.array([h for s in sets for h in sorted(s)], np.uint64)
    offsets = np.cumsum([0, *map(len, sets)])
    index = build_index(hashes, offsets, least)
    bits = len(index.directory).bit_length() - 1
    found = [
        (top, int(entry) >> 32, int(entry) & 0xFFFFFFFF)
        for top, (begin, end) in enumerate(pairwise(index.directory.tolist()))
        for entry in index.entries[begin:end]
    ]
    every = sorted((h, text) for text, s in enumerate(sets) for h in s)
    assert found == [(h >> 64 - bits, h >> 32 - bits & 0xFFFFFFFF, text) for h, text in every]

    def bits_of(bitmap: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> set[int]:
        return set(np.flatnonzero(np.unpackbits(bitmap, bitorder="little")).tolist())

    limit = int(border(least))
    heads = {h for s in sets for h in sorted(s)[: head(len(s), least) if s else 0]}
    for bitmap, marked in (
        (index.early, {h for h, _ in every if h < limit}),
        (index.late, {h for h in heads if h >= limit}),
    ):
        assert bits_of(bitmap) == {h * 8 * len(bitmap) >> 64 for h in marked}
