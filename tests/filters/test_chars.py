from __future__ import annotations

import gzip
import json
import math
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.chars import COLUMNS, PARENTHESES, measure
from filters.segments import Texts
from filters.text import CLASSES, HAN, LETTER, MARK, SPACE, WORD

TEXT = st.lists(
    st.one_of(
        st.sampled_from(
            ["天气", "【广告】", "【", "】", "\n", "AAAAAAA", "1２", "é", "\u3000", "(）"]
        ),
        st.characters(exclude_categories=("Cs",)),
    ),
    max_size=60,
).map("".join)


def definition(text: str) -> dict[str, float | int]:
    bits = [int(CLASSES[ord(char)]) for char in text]
    size = max(len(text), 1)
    letters = max(sum(b & LETTER != 0 for b in bits), 1)
    counts = Counter(text)
    stretches = [text[i : i + 200] for i in range(0, len(text) - 199, 200)] or [text]
    ratios = {
        "alnum_share": sum(b & WORD != 0 for b in bits) / size,
        "han_share": sum(b & HAN != 0 for b in bits) / size,
        "digit_share": sum(map(str.isdecimal, text)) / size,
        "symbol_share": sum(b & (WORD | MARK | SPACE) == 0 for b in bits) / size,
        "special_share": sum(b & (LETTER | MARK) == 0 for b in bits) / size,
        "space_share": sum(b & SPACE != 0 for b in bits) / size,
        "parenthesis_share": sum(char in PARENTHESES for char in text) / size,
        "replacement_share": counts["\ufffd"] / size,
        "private_share": len(
            re.findall("[\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]", text)
        )
        / size,
        "upper_share": sum(map(str.isupper, text)) / letters,
        "lenticular_share": sum(map(len, re.findall(r"【([^】\n]*)】", text))) / size,
        "distinct_share": sum(len(set(s)) for s in stretches) / max(sum(map(len, stretches)), 1),
        "entropy": max(math.log(size) - sum(n * math.log(n) for n in counts.values()) / size, 0.0),
    }
    runs = sum(CLASSES[ord(run[0][0])] & WORD != 0 for run in re.finditer(r"(.)\1{6,}", text, re.S))
    return {name: float(np.float32(value)) for name, value in ratios.items()} | {"num_runs": runs}


def rows(texts: list[str]) -> list[dict[str, float | int]]:
    columns = measure(Texts(pa.array(texts, pa.string())), {})
    assert list(columns) == list(COLUMNS)
    return pa.table({name: pa.array(columns[name]) for name in COLUMNS}).to_pylist()


def assert_equal(texts: list[str]) -> None:
    """The entropy is a sum in another order: equal to the sixth digit."""
    for row, text in zip(rows(texts), texts, strict=True):
        expected = definition(text)
        assert row.pop("entropy") == pytest.approx(expected.pop("entropy"), abs=2e-6)
        assert row == expected


@given(st.lists(TEXT, max_size=4))
def test_equals_definition(texts: list[str]) -> None:
    assert_equal(texts)


SAMPLE = os.environ.get("ASSAY_SAMPLE")


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_equals_definition_on_the_sample(language: str) -> None:
    with gzip.open(Path(str(SAMPLE)) / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        assert_equal([json.loads(line)["text"] for line in file])


def test_han_of_every_block_is_han() -> None:  # ChineseWebText's range ends at U+9FA5
    (row,) = rows(["龦鿿㐀𠀀〇"])
    assert row["han_share"] == row["alnum_share"] == 1.0


def test_the_unicode_class_decides_and_no_list() -> None:  # 上 and 士 are "special" in data-juicer
    (row,) = rows(["上士１。，！"])
    assert row["special_share"] == np.float32(4 / 6)
    assert row["symbol_share"] == 0.5


def test_distinct_share_does_not_fall_with_length() -> None:  # MAP-NEO: > .1 of the whole text
    text = "The quick brown fox jumps over the lazy dog, and runs away from it. " * 3
    short, long = rows([text[:200], text[:200] * 50])
    assert len(set(text)) / len(text[:200] * 50) < 0.1
    assert (
        short["distinct_share"] == long["distinct_share"] == np.float32(len(set(text[:200])) / 200)
    )


def test_brackets_end_with_the_line() -> None:
    (row,) = rows(["【广告】正文【未完\n】【】"])
    assert row["lenticular_share"] == np.float32(2 / 13)


def test_equal_characters() -> None:
    (row,) = rows(["啊" * 200_000])
    assert (row["entropy"], row["num_runs"]) == (0.0, 1)
    assert row["distinct_share"] == np.float32(1 / 200)
