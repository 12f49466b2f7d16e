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

from filters import text as units
from filters.blocks import ALPHABETIC, IDEOGRAPHIC, NO_WORDS, SEVEN, blocks
from filters.english import FUNCTION_WORDS
from filters.letters import IDEOGRAPHIC as SCRIPTS
from filters.letters import count
from filters.segments import Texts
from kernels.arrow import string_buffers

Defined = tuple[str, int, int, int, int, int, list[int]]


def kind_of(line: str) -> int:
    chars = sum(map(len, units.words(line)))
    ideographic = sum(units.CLASSES[ord(char)] & SCRIPTS != 0 for char in line)
    if chars == 0:
        return NO_WORDS
    return IDEOGRAPHIC if SEVEN * ideographic >= chars else ALPHABETIC


def defined(text: str) -> list[Defined]:
    """Text, kind, characters of words, words, function words, symbols, letters of each block."""
    found = []
    for paragraph in units.paragraphs(text):
        runs: list[list[str]] = []
        last = NO_WORDS
        for line in paragraph.split("\n"):
            kind = kind_of(line)
            if not runs or (kind != last and NO_WORDS not in (kind, last)):
                runs.append([])
                last = NO_WORDS
            runs[-1].append(line)
            last = max(last, kind)
        for lines in runs:
            words = [units.words(line) for line in lines]
            chars = [sum(map(len, line)) for line in words]
            han = "\n".join(line for line in lines if kind_of(line) == IDEOGRAPHIC)
            english = [
                word.lower() in FUNCTION_WORDS
                for line in lines
                if kind_of(line) == ALPHABETIC
                for word in units.words(line)
            ]
            found.append(
                (
                    "\n".join(lines).strip(),
                    max(map(kind_of, lines)),
                    sum(chars),
                    sum(map(len, words)),
                    sum(english),
                    sum(
                        len(line.strip()) - num - max(len(of_line) - 1, 0)
                        for line, num, of_line in zip(lines, chars, words, strict=True)
                    ),
                    [int(field[0]) for field in count(*string_buffers(pa.array([han])))],
                )
            )
    return found


def assert_same(texts: list[str]) -> None:
    batch = Texts(pa.array(["not read", *texts], pa.string())[1:])
    found = blocks(batch)
    for i, text in enumerate(texts):
        rows = range(found.offsets[i], found.offsets[i + 1])
        place = np.cumsum(found.kinds == IDEOGRAPHIC) - 1  # of a block's letters
        assert [
            (
                bytes(batch.data[found.begins[row] : found.ends[row]]).decode(),
                *(int(column[row]) for column in found[3:8]),
                [
                    int(field[place[row]]) if found.kinds[row] == IDEOGRAPHIC else 0
                    for field in found.letters
                ],
            )
            for row in rows
        ] == defined(text)


PIECES = st.sampled_from(
    [
        *(
            "今天天气很好。",
            "the weather is",
            "がぎぐ",
            "오늘",
            "\n",
            "\n\n",
            "\n \n",
            " ",
            "12",
            "。",
        ),
        *(
            "\u1112\u1161\u11ab\u1100",
            "𠀀",
            "ｱｲｳ",
            "don't of",
            "x" * 30,
            "…",
            "漢",
            "é",
            "них",
            "你y",
            "😀",
            "abcdefg",
            "\r\n",
        ),
    ]
)


@given(st.lists(st.lists(PIECES, max_size=8).map("".join), max_size=3))
def test_equals_the_definition(texts: list[str]) -> None:
    assert_same(texts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n。\n", ["。"]),
        ("甲乙\n丙丁\n\n戊", ["甲乙\n丙丁", "戊"]),
        ("甲乙\nab cd\n12\nef\n丙", ["甲乙", "ab cd\n12\nef", "丙"]),
        ("甲乙\n---\n丙", ["甲乙\n---\n丙"]),
        ("用 kubectl get pods 查看", ["用 kubectl get pods 查看"]),
    ],
)
def test_where_blocks_begin(text: str, expected: list[str]) -> None:
    batch = Texts(pa.array([text]))
    found = blocks(batch)
    spans = zip(found.begins.tolist(), found.ends.tolist(), strict=True)
    assert [bytes(batch.data[begin:end]).decode() for begin, end in spans] == expected


SAMPLE = os.environ.get("ASSAY_SAMPLE")


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_equals_the_definition_on_the_sample(language: str) -> None:
    with gzip.open(Path(str(SAMPLE)) / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        assert_same([json.loads(line)["text"][:3_000] for line in file][::4])
