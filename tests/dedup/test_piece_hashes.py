"""Hashes of pieces: equal where the folded words are, and nowhere else."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dedup.folding import ONE_WORD, fold
from dedup.piece_hashes import Folded, hash_pieces, of_site

SOME = [
    "ab",
    "AB",
    "a b",
    "a",
    "b",
    "é",
    "猫",
    "貓",
    "狗",
    " ",
    "，",
    "ab猫",
    "猫ab",
    "ａ",
    "か",
    "が",
]
texts_of_few = st.lists(st.sampled_from(SOME), max_size=5).map("".join) | st.text(max_size=6)


def hashed(texts: list[str]) -> Folded:
    data = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in data])
    joined = np.frombuffer(b"".join(data), np.uint8)
    return hash_pieces(joined, ends - [len(text) for text in data], ends)


@given(st.lists(texts_of_few, min_size=1, max_size=12))
def test_equal_where_the_folded_words_are(texts: list[str]) -> None:
    folded = hashed(texts)
    words = [fold(text).split() for text in texts]
    single = [sum(re.fullmatch(f"[{ONE_WORD}]", w) is not None for w in found) for found in words]
    assert folded.characters.tolist() == single
    assert (folded.words + folded.characters).tolist() == [len(found) for found in words]
    for half in folded.hashes.T.tolist():
        for one, value in zip(words, half, strict=True):
            for other, another in zip(words, half, strict=True):
                assert (one == other) == (value == another)


def test_no_two_of_many_lines_of_a_template_share_a_half() -> None:
    folded = hashed([f"page {n} of the 第 {n} part" for n in range(200_000)])
    for half in folded.hashes.T:
        assert len(np.unique(half)) == 200_000
    shared = np.unique(folded.hashes & np.uint64(0xFFFF), axis=0)  # of 2^32, 4.7 pairs are expected
    assert 200_000 - len(shared) < 20


def test_long_enough_by_words_characters_or_both() -> None:
    lines = ["one two three", "one two", "一二三四", "一二三", "one 一二", "one two 一二", "}"]
    assert hashed(lines).is_long(3, 4).tolist() == [True, False, True, False, False, True, False]


def test_a_line_of_another_site_is_another_line() -> None:
    hashes = hashed(["All rights reserved", "ALL RIGHTS RESERVED", "Home"]).hashes
    sites = np.array([[1, 2], [1, 2], [3, 4]], np.uint64)
    mixed = of_site(hashes, sites)
    assert mixed[0].tolist() == mixed[1].tolist() != mixed[2].tolist()
    assert of_site(hashes[:1], sites[2:]).tolist() != mixed[:1].tolist()
