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

from filters.endings import TERMINALS
from filters.fineweb import COLUMNS, measure
from filters.normalize import normalize
from filters.segments import Texts
from filters.text import lines, words

TEXT = st.lists(
    st.sampled_from(["one two ", "天气" * 8, "x" * 15, "。", ".", '"', "\n", "\n\n", "\u3000\n"]),
    max_size=30,
).map("".join)


def definition(text: str) -> dict[str, float]:
    found = lines(text)
    ratios = {
        "punctuation_line_share": sum(row[-1] in TERMINALS for row in found) / max(len(found), 1),
        "short_line_share": sum(len(row) <= 30 for row in found) / max(len(found), 1),
        "newline_ratio": text.count("\n") / max(len(words(text)), 1),
    }
    return {name: float(np.float32(value)) for name, value in ratios.items()}


def rows(texts: list[str]) -> list[dict[str, float]]:
    columns = measure(Texts(pa.array(texts, pa.string())), {})
    assert list(columns) == list(COLUMNS)
    return pa.table({name: pa.array(columns[name]) for name in COLUMNS}).to_pylist()


@given(st.lists(TEXT, max_size=3))
def test_equals_definition(texts: list[str]) -> None:
    assert rows(texts) == [definition(text) for text in texts]


SAMPLE = os.environ.get("ASSAY_SAMPLE")


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_equals_definition_on_the_sample(language: str) -> None:
    with gzip.open(Path(str(SAMPLE)) / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    assert rows(texts) == [definition(text) for text in texts]


def test_line_ends_do_not_hide_the_punctuation() -> None:  # datatrove 0.6.0 drops the CRLF
    text = "The first line.\n第二行。\nno end\n"
    (row,) = rows([text])
    assert row["punctuation_line_share"] == float(np.float32(2 / 3))
    assert rows([normalize(text.replace("\n", "\r\n"))[0]]) == [row]
    assert rows([text.replace("\n", "\u3000\n")]) == [row]
