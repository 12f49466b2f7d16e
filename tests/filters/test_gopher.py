from __future__ import annotations

import gzip
import importlib.util
import json
import os
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.gopher import COLUMNS, RATIOS, measure
from filters.normalize import normalize
from filters.segments import Texts

_spec = importlib.util.spec_from_file_location(
    "gopher_definition", Path(__file__).with_name("gopher_definition.py")
)
assert _spec is not None
assert _spec.loader is not None
definition = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(definition)

TEXT = st.text(st.sampled_from("abA 你好的\n\n\u3000。.…#＃-•'\u0301😀")) | st.lists(
    st.sampled_from(["the ", "a b ", "天气", "你好。", "\n", "\n\n", "...", "x1 ", "- "]),
    max_size=60,
).map("".join)


def rows(texts: list[str], language: str) -> list[dict[str, float | None]]:
    columns = measure(
        Texts(pa.array(texts, pa.string())),
        {"lang": pa.array([language] * len(texts), pa.string())},
    )
    assert list(columns) == list(COLUMNS)
    return pa.table(
        {name: pa.array(columns[name], s.type) for name, s in COLUMNS.items()}
    ).to_pylist()


def assert_as_defined(text: str, language: str, row: dict[str, float | None]) -> None:
    expected = definition.gopher(text, language)
    assert expected.keys() == row.keys()
    assert row == {
        name: float(np.float32(value)) if name in RATIOS else value
        for name, value in expected.items()
    }


@given(st.lists(TEXT, max_size=3), st.sampled_from(["en", "zh", "ko", ""]))
def test_equals_definition(texts: list[str], language: str) -> None:
    for text, row in zip(texts, rows(texts, language), strict=True):
        assert_as_defined(text, language, row)


@given(TEXT)
def test_shares_lie_between_zero_and_one(text: str) -> None:
    (row,) = rows([text], "zh")
    assert [n for n in RATIOS if n.endswith("_share") and not 0 <= (row[n] or 0) <= 1] == []
    assert [n for n, value in row.items() if value is None or value != value] == []


@pytest.mark.parametrize("text", ["", " \n\n", "。！？", "😀"])
def test_text_without_words_measures_zero(text: str) -> None:
    assert {n: v for n, v in rows([text], "en")[0].items() if v} == {}


def test_unique_ngram_does_not_count() -> None:  # datatrove 0.6.0 drops this for top_2_gram
    (row,) = rows(["Photosynthesis converts sunlight into chemical energy."], "en")
    assert row["top_2_gram_char_share"] == 0.0


def test_values_of_a_small_text() -> None:
    (row,) = rows(["The cat and the dog...\nthe cat and the dog\n\n# 3"], "en")
    assert row["num_words"] == 11
    assert row["num_stop_words"] == 2
    assert row["hash_ratio"] == float(np.float32(1 / 11))
    assert row["ellipsis_line_share"] == float(np.float32(1 / 3))
    assert row["top_2_gram_char_share"] == float(np.float32(12 / 31))  # the cat, twice
    assert row["dup_5_gram_char_share"] == float(np.float32(15 / 31))
    assert row["dup_6_gram_char_share"] == 0.0


def test_ten_characters_of_chinese_repeated() -> None:
    (row,) = rows(["今天天气真的很好啊，" * 2], "zh")
    assert row["num_words"] == 18
    assert row["dup_9_gram_char_share"] == 0.5
    assert row["dup_10_gram_char_share"] == 0.0


def test_simplified_and_traditional_stop_words_are_one() -> None:
    assert [r["num_stop_words"] for r in rows(["為了", "为為", "與与于", "cat"], "zh")] == [
        2,
        1,
        2,
        0,
    ]
    assert rows(["的"], "ja")[0]["num_stop_words"] is None


@pytest.mark.parametrize(
    ("char", "num_words", "dup_10"),
    [("a", 1, 0.0), ("的", 200_000, 0.999995), ("\n", 0, 0.0), (" ", 0, 0.0), ("。", 0, 0.0)],
)
def test_linear_in_equal_characters(char: str, num_words: int, dup_10: float) -> None:
    rows(["compile first"], "en")
    start = time.process_time()
    (row,) = rows([char * 200_000], "zh")
    assert time.process_time() - start < 1.0  # 20 ms; a quadratic loop takes minutes
    assert row["num_words"] == num_words
    assert row["dup_10_gram_char_share"] == float(np.float32(dup_10))


def test_slice_of_an_array() -> None:
    texts = pa.array(["x y z", "你好 你好", "the the"])
    columns = measure(Texts(texts.slice(1, 2)), {"lang": pa.array(["zh", "en"])})
    assert columns["num_words"].tolist() == [4, 2]


SAMPLE = os.environ.get("ASSAY_SAMPLE")


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_equals_definition_on_the_sample(language: str) -> None:
    with gzip.open(Path(str(SAMPLE)) / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    for text, row in zip(texts, rows(texts, language), strict=True):
        assert_as_defined(text, language, row)


def test_line_ends_do_not_change_the_values() -> None:  # datatrove's FineWeb filter drops the CRLF
    text = "One line of text.\nand another line…\n\n- a bullet\n"
    crlf = normalize(text.replace("\n", "\r\n"))[0]
    assert rows([crlf], "en") == rows([text], "en")
    assert rows([text.replace("\n", "\u3000\n")], "en") == rows([text], "en")


def test_chinese_and_english_in_one_batch() -> None:  # data-juicer #125, datatrove #135
    texts = ["The cat and the dog", "我的猫和狗"]
    together = measure(Texts(pa.array(texts)), {"lang": pa.array(["en", "zh"])})
    assert together["num_words"].tolist() == [5, 5]
    assert together["num_stop_words"].to_pylist() == [2, 2]
    assert together["mean_word_length"].tolist() == [float(np.float32(3.0)), 1.0]
