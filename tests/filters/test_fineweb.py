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
from filters.fineweb import COLUMNS, KINDS, measure
from filters.normalize import normalize
from filters.segments import Texts
from filters.stop_words import STOP_WORDS
from filters.text import lines, words

TEXT = st.lists(
    st.sampled_from(
        [
            *("one two ", "天气" * 8, "佢嘅会係", "之其國學", "x" * 15),
            *("。", ".", '"', "\n", "\n\n", "\u3000\n"),
        ]
    ),
    max_size=30,
).map("".join)


def definition(text: str, language: str) -> dict[str, float | None]:
    found = lines(text)
    ratios = {
        "punctuation_line_share": sum(row[-1] in TERMINALS for row in found) / max(len(found), 1),
        "short_line_share": sum(len(row) <= 30 for row in found) / max(len(found), 1),
        "newline_ratio": text.count("\n") / max(len(words(text)), 1),
    }
    chinese = language == "zh"
    return {
        **{name: float(np.float32(value)) for name, value in ratios.items()},
        **{f"num_{kind}_words": num_stop_words(text, kind) if chinese else None for kind in KINDS},
    }


def num_stop_words(text: str, kind: str) -> int:
    return sum(not set(entry).isdisjoint(words(text)) for entry in STOP_WORDS[kind])


def rows(texts: list[str], language: str = "zh") -> list[dict[str, float | None]]:
    lang = pa.array([language] * len(texts), pa.string())
    columns = measure(Texts(pa.array(texts, pa.string())), {"lang": lang})
    assert list(columns) == list(COLUMNS)
    return pa.table({name: pa.array(columns[name]) for name in COLUMNS}).to_pylist()


@given(st.lists(TEXT, max_size=3), st.sampled_from(["en", "zh", ""]))
def test_equals_definition(texts: list[str], language: str) -> None:
    assert rows(texts, language) == [definition(text, language) for text in texts]


SAMPLE = os.environ.get("ASSAY_SAMPLE")


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_equals_definition_on_the_sample(language: str) -> None:
    with gzip.open(Path(str(SAMPLE)) / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    assert rows(texts, language) == [definition(text, language) for text in texts]


def test_line_ends_do_not_hide_the_punctuation() -> None:  # datatrove 0.6.0 drops the CRLF
    text = "The first line.\n第二行。\nno end\n"
    (row,) = rows([text])
    assert row["punctuation_line_share"] == float(np.float32(2 / 3))
    assert rows([normalize(text.replace("\n", "\r\n"))[0]]) == [row]
    assert rows([text.replace("\n", "\u3000\n")]) == [row]


def test_words_of_each_kind_of_chinese() -> None:
    (row,) = rows(["佢哋嘅學校喺香港。"])
    assert (row["num_yue_words"], row["num_lzh_words"]) == (3, 1)  # 佢 嘅 喺; 學
    (row,) = rows(["学而时习之，国之大事也。國"])
    assert (row["num_yue_words"], row["num_lzh_words"]) == (2, 8)  # 而 国; 学 而 时 之 国 大 事 也
    (row,) = rows(["佢嘅之乎"], "ja")
    assert (row["num_yue_words"], row["num_lzh_words"]) == (None, None)
