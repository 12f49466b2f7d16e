from __future__ import annotations

import gzip
import json
import math
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.repeats import COLUMNS, measure
from filters.segments import Texts
from filters.text import words

TEXT = st.lists(
    st.sampled_from(
        ["one two three ", "天地玄黄宇宙洪荒，", "日月盈昃。", "internationally ", "a ", "\n"]
    ),
    max_size=40,
).map("".join)
_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def definition(text: str) -> dict[str, float]:
    found = [word.translate(_ASCII_LOWER) for word in words(text)]
    ratios = {"char_10_gram_share": _most_frequent(_of_chars(found, 10))}
    for n in (5, 10, 13):
        grams = [tuple(found[i : i + n]) for i in range(len(found) - n + 1)]
        twice = sum(count for count in Counter(grams).values() if count > 1)
        ratios[f"word_{n}_gram_share"] = twice / max(len(grams), 1)
    return {name: float(np.float32(value)) for name, value in ratios.items()}


def _of_chars(found: list[str], num_chars: int) -> list[tuple[str, ...]]:
    """The fewest words from each on that have so many characters."""
    grams = []
    for i in range(len(found)):
        size = 1
        while i + size < len(found) and len("".join(found[i : i + size])) < num_chars:
            size += 1
        if len("".join(found[i : i + size])) >= num_chars:
            grams.append(tuple(found[i : i + size]))
    return grams


def _most_frequent(grams: list[tuple[str, ...]]) -> float:
    counts = sorted(Counter(grams).values(), reverse=True)
    most = min(int(math.sqrt(len(counts))), sum(count > 1 for count in counts))
    return sum(counts[:most]) / max(len(grams), 1)


def rows(texts: list[str]) -> list[dict[str, float]]:
    columns = measure(Texts(pa.array(texts, pa.string())), {})
    assert list(columns) == list(COLUMNS)
    return pa.table({name: pa.array(columns[name]) for name in COLUMNS}).to_pylist()


@given(st.lists(TEXT, max_size=4))
def test_equals_definition(texts: list[str]) -> None:
    assert rows(texts) == [definition(text) for text in texts]


SAMPLE = os.environ.get("ASSAY_SAMPLE")


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_equals_definition_on_the_sample(language: str) -> None:
    with gzip.open(Path(str(SAMPLE)) / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    assert rows(texts) == [definition(text) for text in texts]


def test_a_text_that_stands_twice_repeats_whole() -> None:
    once = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往"
    (row,) = rows([f"{once}。{once}"])
    assert row["word_13_gram_share"] == np.float32(2 * 8 / 28)
    assert rows([once])[0] == dict.fromkeys(COLUMNS, 0.0)


def test_length_does_not_cost_more_than_its_share() -> None:
    (row,) = rows(["啊" * 200_000])
    assert row == dict.fromkeys(COLUMNS, 1.0)
