"""Folded view, words and shingle hashes: the compiled loop against the plain definition."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import resource
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.folding import fold
from dedup.shingles import folded_shingles, mix, shingles
from kernels.han import TRADITIONAL_TO_SIMPLIFIED

MASK = 2**64 - 1
# Characters that meet every branch of the loop, between whatever hypothesis finds.
CHARS = st.one_of(
    st.sampled_from("aZß1９ .,\r\n中國文カｶﾞがé\u0301ﷺ㌖½①\u00ad\u200b\u200d\ufeff👍𠀀İſ한"),
    st.characters(codec="utf-8"),
)
TEXTS = st.lists(st.text(CHARS, max_size=40), max_size=5)


def _sets(texts: list[str], ngram: int = 5) -> list[set[int]]:
    hashes, offsets = shingles(pa.array(texts, pa.string()), ngram)
    return [set(hashes[a:b].tolist()) for a, b in itertools.pairwise(offsets)]


def _jaccard(a: str, b: str) -> float:
    x, y = _sets([a, b])
    return len(x & y) / len(x | y)


def _defined(text: str, ngram: int) -> list[int]:
    """The definition in plain Python integers."""
    hashes = [_word_hash(word) for word in fold(text).split()]
    n = min(ngram, len(hashes))
    found = set()
    for i in range(len(hashes) - n + 1 if n else 0):
        total = 0
        for word in hashes[i : i + n]:
            total = (total * 0xD1342543DE82EF95 + word) & MASK
        found.add(_mix((total + n) & MASK))
    return sorted(found)


def _word_hash(word: str) -> int:
    h = 0x2545F4914F6CDD1D
    for char in word:
        # a letter that is a word of its own carries bit 24
        alone = len(word) == 1 and fold(char + char) == f"{char} {char}"
        h = ((h ^ (ord(char) | alone << 24)) * 0x9E3779B97F4A7C15) & MASK
    return _mix(h)


def _mix(x: int) -> int:
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & MASK
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & MASK
    return x ^ x >> 33


def _defined_folded(text: str) -> list[int]:
    words = [_word_hash(word) for word in fold(text).split()]
    found = []
    for base in (0xD1342543DE82EF95, 0xA0761D6478BD642F):
        total = len(words)
        for word in words:
            total = (total * base + word) & MASK
        found.append(_mix(total) if words else 0)
    return found


@given(TEXTS)
def test_folded_hashes(texts: list[str]) -> None:
    """Those of the definition: equal for texts of one folded view, and for no others."""
    hashes = folded_shingles(pa.array(texts, pa.string()))[2].tolist()
    assert hashes == [_defined_folded(text) for text in texts]
    views = [fold(text) for text in texts]
    assert len({tuple(pair) for pair in hashes}) == len(set(views))


def test_mix_is_murmur3s_finalizer() -> None:
    assert int(mix(np.uint64(1))) == _mix(1) == 0xB456BCFC34C2CB2C


@given(TEXTS, st.integers(1, 7))
def test_the_loop_equals_the_definition(texts: list[str], ngram: int) -> None:
    hashes, offsets = shingles(pa.array(texts, pa.string()), ngram)
    defined = [_defined(text, ngram) for text in texts]
    assert offsets.tolist() == [0, *np.cumsum([len(d) for d in defined]).tolist()]
    assert hashes.tolist() == [h for d in defined for h in d]


def test_the_loop_equals_the_definition_on_every_code_point() -> None:
    chars = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    chars = [c for c in chars if unicodedata.category(c) not in ("Cn", "Co")]
    text = "x".join(chars[::7])
    assert _sets([text], 3)[0] == set(_defined(text, 3))


@given(st.lists(st.text("ab中1", min_size=1, max_size=3), max_size=30))
def test_how_words_are_set_apart_does_not_matter(words: list[str]) -> None:
    assert (
        len({frozenset(_sets([sep.join(words)], 3)[0]) for sep in (" ", "\r\n", "，", "--")}) == 1
    )


CHINESE = (
    "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。" * 2
)
ENGLISH = "All human beings are born free and equal in dignity and rights, and should act so. " * 2


def test_copies_that_are_the_same_to_a_reader_have_jaccard_1() -> None:
    traditional = {simple: char for char, simple in TRADITIONAL_TO_SIMPLIFIED.items()}
    assert _jaccard(CHINESE, "".join(traditional.get(c, c) for c in CHINESE)) == 1.0
    assert _jaccard(CHINESE, CHINESE.replace("，", ",").replace("。", ". ")) == 1.0
    assert _jaccard(CHINESE, " ".join(CHINESE)) == 1.0
    assert _jaccard(ENGLISH, ENGLISH.upper().replace(" ", "\r\n  ")) == 1.0
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in ENGLISH)
    assert _jaccard(ENGLISH, wide) == 1.0
    assert _jaccard(CHINESE, ENGLISH) == 0.0


def test_order_matters() -> None:
    assert _jaccard("one two three four five", "five four three two one") == 0.0


def test_short_texts_are_one_shingle_and_never_merged() -> None:
    """DataFlow PR #526 (cat, dog), data-juicer PR #1051 (hi), NeMo Curator #1216 (ok)."""
    texts = ["cat", "dog", "cat", "hi", "ok", "a", "a a", "猫", "猫狗", "ab", "a b"]
    sets = _sets(texts)
    assert [len(s) for s in sets] == [1] * len(texts)
    assert sets[0] == sets[2]
    assert len(set().union(*sets)) == len(texts) - 1


def test_no_words_no_shingles() -> None:
    hashes, offsets = shingles(pa.array(["", "  \r\n", "!!!", "👍", "一"], pa.string()))
    assert offsets.tolist() == [0, 0, 0, 0, 0, 1]
    assert len(hashes) == 1
    assert shingles(pa.array([], pa.string()))[1].tolist() == [0]


def test_slices_and_large_strings_read_the_same() -> None:
    texts = ["skipped", ENGLISH, "", CHINESE, "skipped"]
    expected = shingles(pa.array(texts[1:4]))
    for array in (pa.array(texts).slice(1, 3), pa.array(texts, pa.large_string()).slice(1, 3)):
        found = shingles(array)
        assert [a.tolist() for a in found] == [a.tolist() for a in expected]


def test_repetition_is_one_shingle() -> None:
    assert [len(s) for s in _sets(["哈" * 200_000, "ab " * 200_000, "a" * 200_000])] == [1, 1, 1]


def test_wrong_ngram_is_refused() -> None:
    with pytest.raises(ValueError, match="ngram = 0: a shingle needs at least one word"):
        shingles(pa.array(["a"]), 0)


def test_hashes_are_stable() -> None:
    """A changed value is another format of stored signatures: change it on purpose only."""
    assert shingles(pa.array(["cat", "中文", "one two three four five"]))[0].tolist() == [
        0x53A0DD6BB524766D,
        0xE396291A6A855065,
        0x03AEE60086C9C355,
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
def test_a_text_of_50_mb_stays_in_bounds() -> None:
    words = np.random.default_rng(0).integers(0x4E00, 0x9FFF, 50_000_000 // 3)
    text = words.astype("<u2").tobytes().decode("utf-16-le")
    array = pa.array([text])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, offsets = shingles(array)
    peak_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert offsets[1] == len(words) - 4
    assert peak_mb < 48 * len(words) / 1e6 + 100


@pytest.mark.skipif("ASSAY_SAMPLE" not in os.environ, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("name", ["zh", "en"])
def test_the_loop_equals_the_definition_on_real_text(name: str) -> None:
    with gzip.open(Path(os.environ["ASSAY_SAMPLE"]) / f"{name}.jsonl.gz", "rt") as lines:
        texts = [json.loads(line)["text"] for line in lines][::50]
    assert _sets(texts) == [set(_defined(text, 5)) for text in texts]
