"""Boilerplate: the kernel finds what the plain rules take, and the edits are whole lines."""

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

from filters.boilerplate import chrome_lines, find, measure
from filters.chrome import RULES, rules_of
from filters.chrome_keys import rules_by_line
from filters.edits import applied, fault
from filters.segments import Texts
from filters.text import lines

EXAMPLES = [line for rule in RULES.values() for line in rule.examples]


def by_definition(text: str) -> list[tuple[int, str]]:
    return [(number, rule) for number, rule in enumerate(rules_of(lines(text))) if rule]


def by_kernel(text: str, kind: str = "web") -> list[tuple[int, str]]:
    texts = Texts(pa.array([text], pa.string()))
    return [(found.line, found.rule) for found in chrome_lines(texts, pa.array([kind]))]


def remaining(text: str) -> str:
    texts = Texts(pa.array([text], pa.string()))
    edits = find(texts, {"kind": pa.array(["web"])})
    assert fault(texts, edits) == ""
    left: str = applied(texts.array, edits)[0].as_py()
    return left


KEYS = [key for rule in RULES.values() for key in rule.keys]
PIECES = st.one_of(
    st.sampled_from(EXAMPLES + KEYS),
    st.sampled_from(
        ["\n", "\r\n", " ", "　", "。", "x", "xcopyright", "評論", "©", "é", "3", "｜"]
    ),
    st.text(max_size=5),
)


@pytest.mark.parametrize("key", KEYS)
def test_the_first_look_finds_every_key(key: str) -> None:
    texts = Texts(pa.array([f"X {key} X", f"的{key}的".upper()]))
    masks = rules_by_line(texts.data, texts.segments.lines, np.zeros(2, bool))
    bits = sum(1 << n for n, rule in enumerate(RULES.values()) if key in rule.keys)
    assert [int(mask) & bits for mask in masks] == [bits, bits]


@given(st.lists(PIECES, max_size=60).map("".join))
def test_kernel_is_the_definition(text: str) -> None:
    assert by_kernel(text) == by_definition(text)


@given(
    st.lists(st.sampled_from([*EXAMPLES, *["正文。", "Text.", ""] * 40]), max_size=60).map(
        "\n".join
    )
)
def test_kernel_is_the_definition_for_whole_lines(text: str) -> None:
    assert by_kernel(text) == by_definition(text)


@pytest.mark.skipif("ASSAY_SAMPLE" not in os.environ, reason="no sample")
@pytest.mark.parametrize("name", ["zh", "en"])
def test_kernel_is_the_definition_on_real_text(name: str) -> None:
    with gzip.open(
        Path(os.environ["ASSAY_SAMPLE"]) / f"{name}.jsonl.gz", "rt", encoding="utf-8"
    ) as file:
        found = [json.loads(line)["text"] for line in file]
    texts = Texts(pa.array(found, pa.string()))
    kinds = pa.array(["web"] * len(found))
    starts = texts.segments.lines.offsets
    taken = [
        (found.text, found.line - starts[found.text], found.rule)
        for found in chrome_lines(texts, kinds)
    ]
    assert taken == [(row, *line) for row, text in enumerate(found) for line in by_definition(text)]


def test_an_edit_takes_the_line_with_its_line_feed() -> None:
    assert remaining("甲\n  展开全文 \r\n乙") == "甲\n乙"
    assert remaining("展开全文\n乙") == "乙"
    assert remaining("甲\n展开全文") == "甲\n"
    assert remaining("展开全文") == ""
    assert remaining("展开全文\n\nRead more") == "\n"


def test_a_rule_of_edges_spares_the_middle() -> None:
    line = "转载请注明出处"
    body = ["这里是正文。"] * 40
    assert remaining("\n".join([line, *body])) == "\n".join(body)
    middle = "\n".join([*body, line, *body])
    assert remaining(middle) == middle
    assert remaining("\n".join([*body, line, *body[:11]])) == "\n".join([*body, *body[:11]])
    assert remaining("\n".join([*body, line, *body[:12]])).count(line) == 1


def test_code_keeps_its_lines() -> None:
    assert by_kernel("Copyright (c) 2012 Example Ltd.", "code") == []
    assert by_kernel("Copyright (c) 2012 Example Ltd.") == [(0, "copyright")]


def test_counts_and_share() -> None:
    texts = Texts(pa.array(["四个字吧\n展开全文\n返回顶部", "", "展开全文\n" * 10]))
    columns = measure(texts, {"kind": pa.array(["web", "", ""])})
    assert columns["num_lines"].tolist() == [2, 0, 10]
    assert columns["num_read_more"].tolist() == [1, 0, 10]
    assert columns["num_navigation"].tolist() == [1, 0, 0]
    assert [round(share, 4) for share in columns["char_share"].tolist()] == [0.6667, 0.0, 1.0]
    assert columns["lines"].to_pylist() == [
        ["read_more: 展开全文", "navigation: 返回顶部"],
        [],
        ["read_more: 展开全文"] * 8,
    ]


def test_long_texts_take_linear_time() -> None:
    for text in (
        "的" * 200_000,
        "©" * 200_000,
        "上一篇" * 70_000,
        "next " * 40_000,
        "\n首页" * 40_000,
    ):
        assert len(by_kernel(text)) == len(by_definition(text))
