"""The plain function is the definition; the kernel is equal to it on every text."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.spread import View, fold_char, spread, spread_all
from kernels.arrow import string_buffers

VIEWS = [
    View(),
    View(fold=False),
    View("raw"),
    View("raw", fold=False, max_chars=7),
    View(max_chars=3),
]


def by_kernel(texts: list[str], view: View) -> list[str]:
    data, offsets = spread_all(*string_buffers(pa.array(texts, pa.string())), view)
    ends = offsets.tolist()
    raw = data.tobytes()
    return [raw[ends[i] : ends[i + 1]].decode() for i in range(len(texts))]


@pytest.mark.parametrize(
    ("text", "view", "expected"),
    [
        ("他用Python3写。", View(), " 他 用 python3 写 。"),
        ("don't  stop\n\nnow", View(), " don ' t stop now"),
        ("ＡＢ１２　龍門", View(), " ab12 龙 门"),
        ("ＡＢ１２　龍門", View(fold=False), " ＡＢ１２ 龍 門"),
        ("今天天气 很好\n", View("raw"), " 今天天气 很好"),
        ("今天天气很好", View(max_chars=2), " 今 天"),
        ("が́x", View(), " が ́x"),
        ("來到北京大學，Ok", View("jieba"), " 来到 北京大学 , ok"),
        ("", View(), ""),
        (" \n\t", View(), ""),
    ],
)
def test_examples(text: str, view: View, expected: str) -> None:
    assert spread(text, view) == expected
    assert by_kernel([text], view) == [expected]


def test_folding_is_one_character_for_one() -> None:
    chars = [chr(code) for code in range(0x30000) if not 0xD800 <= code < 0xE000]
    assert {len(fold_char(char)) for char in chars} == {1}
    assert "".join(map(fold_char, "ÀＺｱ龍İß１")) == "àzア龙İß1"


@given(
    st.lists(
        st.text(
            st.sampled_from("aB7 \n\r你好龍。，のー한Ａ１　😀é́'_<>") | st.characters(codec="utf-8"),
            max_size=40,
        ),
        max_size=5,
    ),
    st.sampled_from(VIEWS),
)
def test_the_kernel_is_equal(texts: list[str], view: View) -> None:
    assert by_kernel(texts, view) == [spread(text, view) for text in texts]


def test_a_slice_of_an_array() -> None:
    texts = pa.array(["前面", "中間 a", "後面"])[1:]
    data, offsets = spread_all(*string_buffers(texts), View())
    assert data.tobytes().decode() == " 中 间 a 后 面"
    assert offsets.tolist() == [0, 10, 18]


@pytest.mark.skipif("ASSAY_SAMPLE" not in os.environ, reason="ASSAY_SAMPLE names no folder")
@pytest.mark.parametrize("name", ["zh", "en"])
def test_the_kernel_is_equal_on_real_text(name: str) -> None:
    with gzip.open(Path(os.environ["ASSAY_SAMPLE"]) / f"{name}.jsonl.gz") as file:
        texts = [json.loads(line)["text"][:3_000] for line in file][::7]
    assert by_kernel(texts, View()) == [spread(text, View()) for text in texts]
