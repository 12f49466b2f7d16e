"""The one pass over a batch equals the plain functions of filters/text.py on every text."""

from __future__ import annotations

import gzip
import json
import os
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filters import text as units
from filters.pieces import Pieces
from filters.segments import Texts
from filters.wordruns import LONG_WORD, word_hash
from kernels.hashing import span_hash

# Dense in what decides: scripts, marks, joiners, apostrophes, spaces, emoji, ends of sentences.
CHARS = st.sampled_from(
    "aZ9é你好㐀のー한й'’\u0301\u200d\ufe0f\U000e0100 \n\u3000\x1c。.…！\"”)😀#-"
) | st.characters(codec="utf-8")
PIECES = ["the ", "Internationalization", "a b", "天气", "你好。", "\n", "\n\n", "... "]
TEXT = st.text(CHARS) | st.lists(st.sampled_from(PIECES), max_size=400).map("".join)


def folded(word: str) -> str:
    return "".join(char.lower() if "A" <= char <= "Z" else char for char in word)


def assert_pieces(texts: Texts, found: Pieces, text: int, expected: list[str]) -> None:
    rows = slice(found.offsets[text], found.offsets[text + 1])
    spans = list(zip(found.begins[rows].tolist(), found.ends[rows].tolist(), strict=True))
    words = [units.words(piece) for piece in expected]
    assert [texts.data[a:b].tobytes().decode() for a, b in spans] == expected
    assert found.hashes[rows].tolist() == [span_hash(texts.data, a, b) for a, b in spans]
    assert found.chars[rows].tolist() == [len(piece) for piece in expected]
    assert found.words[rows].tolist() == [len(row) for row in words]
    assert found.sentences[rows].tolist() == [len(units.sentences(piece)) for piece in expected]
    long_words = [sum(len(word) > LONG_WORD for word in row) for row in words]
    assert found.long_words[rows].tolist() == long_words


def assert_as_defined(batch: list[str]) -> None:
    texts = Texts(pa.array(["not read", *batch], pa.string())[1:])
    words, lines, paragraphs, counts = texts.segments
    for i, text in enumerate(batch):
        found = [folded(word) for word in units.words(text)]
        distinct = list(dict.fromkeys(found))
        rows = slice(words.offsets[i], words.offsets[i + 1])
        hashes = words.vocabulary[words.starts[i] : words.starts[i + 1]].tolist()
        assert hashes == [word_hash(word) for word in distinct]
        numbers = {word: number for number, word in enumerate(distinct)}
        assert words.names[rows].tolist() == [numbers[word] for word in found]
        assert words.ends[rows].tolist() == list(accumulate(map(len, found)))
        assert counts.letter_words[i] == sum(
            any(units.CLASSES[ord(c)] & units.LETTER for c in word) for word in found
        )
        assert counts.newlines[i] == text.count("\n")
        assert_pieces(texts, lines, i, units.lines(text))
        assert_pieces(texts, paragraphs, i, units.paragraphs(text))


@given(st.lists(TEXT, max_size=3))
@example(["don''t a'你'b 你'a a\u0301'b a'\u0301b 你\u0301b e'\u0301 x'"])
@example(["a.b a. b.” c.\u3000d.…", "甲。乙\n丙。。。丁", "(Yes.) No! \n \n Maybe?", "a.\n\n.b"])
@example(["x" * LONG_WORD, "x" * (LONG_WORD + 1) + " y\nz", "é" * 1001 + "\n\n" + "a" * 1200])
@example([" ".join(f"w{i}" for i in range(300)), "".join(map(chr, range(0x4E00, 0x5000)))])
def test_equals_the_plain_functions(batch: list[str]) -> None:
    assert_as_defined(batch)


SAMPLE = os.environ.get("ASSAY_SAMPLE")


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_equals_the_plain_functions_on_the_sample(language: str) -> None:
    with gzip.open(Path(str(SAMPLE)) / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        assert_as_defined([json.loads(line)["text"] for line in file])


def test_word_hash_folds_ascii_case_only() -> None:
    assert word_hash("The") == word_hash("the")
    assert word_hash("INTERNATIONALIZATION") == word_hash("internationalization")
    assert word_hash("É") != word_hash("é")
    assert word_hash("a") != word_hash("aa") != word_hash("aaaaaaaaa")


def test_segments_are_found_once_and_only_when_asked() -> None:
    texts = Texts(pa.array(["a b", "c"]))
    assert "segments" not in vars(texts)
    assert texts.segments is texts.segments
    assert len(texts) == 2


def test_a_null_is_no_text() -> None:
    with pytest.raises(ValueError, match="1 of 2 texts are null"):
        Texts(pa.array(["a", None]))
