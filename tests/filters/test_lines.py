from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.lines import COLUMNS, COUNTER, READ_MORE, SHORT_LINE, measure
from filters.segments import Texts
from filters.text import lines, words

PIECES = (
    *("one two ", "天气很好", "SHOUT", "12", "３", " likes", "阅读 1.2万", "read MORE", "。。。"),
    *("展开", "é", "!", "\n", "\u3000\n", "x" * 99, "评论(35)", ", "),
)
TEXT = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def definition(text: str, language: str) -> dict[str, float | int]:
    found = lines(text)
    num_lines = max(len(found), 1)
    kinds = {
        "upper_share": [2 * sum("A" <= c <= "Z" for c in row) > len(row) for row in found],
        "numeric_share": [row.isascii() and row.isdigit() for row in found],
        "counter_share": [
            len(row.encode()) <= 64 and COUNTER.fullmatch(row) is not None for row in found
        ],
        "short_share": [len(words(row)) < SHORT_LINE.get(language, 2) for row in found],
    }
    removed = sum(
        len(words(row)) for row, *hit in zip(found, *kinds.values(), strict=True) if any(hit)
    )
    more = sum(row.lower().endswith(READ_MORE) for row in found)
    ratios = {
        "read_more_share": more / num_lines,
        **{name: sum(hits) / num_lines for name, hits in kinds.items()},
        "removed_word_share": removed / max(len(words(text)), 1),
    }
    return {
        "mean_chars": float(np.float32(sum(map(len, found)) / num_lines)),
        "max_chars": max(map(len, found), default=0),
        "num_long": sum(len(row.encode()) >= 200 for row in found),
        **{name: float(np.float32(value)) for name, value in ratios.items()},
    }


def rows(texts: list[str], language: str) -> list[dict[str, float | int]]:
    columns = measure(
        Texts(pa.array(texts, pa.string())),
        {"lang": pa.array([language] * len(texts), pa.string())},
    )
    assert list(columns) == list(COLUMNS)
    return pa.table({name: pa.array(columns[name]) for name in COLUMNS}).to_pylist()


@given(st.lists(TEXT, max_size=4), st.sampled_from(["en", "zh", "ja", ""]))
def test_equals_definition(texts: list[str], language: str) -> None:
    assert rows(texts, language) == [definition(text, language) for text in texts]


SAMPLE = os.environ.get("ASSAY_SAMPLE")


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_equals_definition_on_the_sample(language: str) -> None:
    with gzip.open(Path(str(SAMPLE)) / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    assert rows(texts, language) == [definition(text, language) for text in texts]


@pytest.mark.parametrize(
    "line",
    ["12 likes", "3.4K views", "(1,024 Shares)", "阅读 1.2万", "35条评论", "点赞：12", "浏览量"],
)
def test_counters(line: str) -> None:
    (row,) = rows([line], "zh")
    assert row["counter_share"] == (0.0 if line == "浏览量" else 1.0)


def test_lines_of_prose_are_no_counters() -> None:
    text = "He likes 12 of them.\n2023 shares rose sharply.\n他在3月评论了这本书。\n下载 3 个文件"
    assert rows([text], "zh")[0]["counter_share"] == 0.0


def test_line_ends_change_nothing() -> None:
    text = "第一行有字。\nREAD MORE\n12\n"
    assert rows([text.replace("\n", "\u3000\n\n")], "zh") == rows([text], "zh")


def test_a_verse_is_not_short() -> None:
    (row,) = rows(["床前明月光\n疑是地上霜"], "zh")
    assert (row["short_share"], row["removed_word_share"], row["mean_chars"]) == (0.0, 0.0, 5.0)
