from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import text as units
from filters.segments import Texts
from kernels.arrow import string_buffers

UNITS = (units.words, units.lines, units.sentences, units.paragraphs)

# Dense in what decides: scripts, marks, joiners, apostrophes, spaces, emoji, ends of sentences.
TEXT = st.text(
    st.sampled_from("aB9é你好のー한й'’\u0301\u200d\ufe0f\U000e0100 \n\u3000。.…！😀#-")
    | st.characters(codec="utf-8")
)


# The table of docs/filters.md: what, text, and how many of each unit.
EXAMPLES = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (Path(__file__).parents[2] / "docs/filters.md").read_text("utf-8").splitlines()
    if re.fullmatch(r"\|.*\| `.*` (\| \d+ ){6}\|", line)
]


@pytest.mark.parametrize("example", EXAMPLES, ids=[row[0] for row in EXAMPLES])
def test_examples_of_the_documentation(example: list[str]) -> None:
    text = example[1].strip("`").replace(r"\n", "\n").replace(r"\r", "\r")
    letters = [char for char in text if units.CLASSES[ord(char)] & units.LETTER]
    found = (text, letters, *(unit(text) for unit in UNITS))
    assert [len(pieces) for pieces in found] == [int(number) for number in example[2:]]
    segments = Texts(pa.array([text])).segments
    assert [
        segments.words.offsets[1],
        segments.lines.offsets[1],
        segments.paragraphs.sentences[: segments.paragraphs.offsets[1]].sum(),
        segments.paragraphs.offsets[1],
    ] == [len(pieces) for pieces in found[2:]]


def test_examples_in_every_kind_of_text() -> None:
    kinds = {row[0].split(",")[0] for row in EXAMPLES}
    assert kinds >= {"zh", "zh-Hant", "en", "mixed", "ja", "ko", "emoji", "code"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("。！？…😀 --", []),
        ("今天天气很好。", ["今", "天", "天", "气", "很", "好"]),
        ("他用Python3写don't。", ["他", "用", "Python3", "写", "don't"]),
        ("'tis the dogs' o’clock", ["tis", "the", "dogs", "o’clock"]),
        ("snake_case 3.14", ["snake", "case", "3", "14"]),
        ("ラーメン", ["ラ", "ー", "メ", "ン"]),
        ("한국어 текст", ["한국어", "текст"]),
        ("cafe\u0301 葛\U000e0100城", ["cafe\u0301", "葛\U000e0100", "城"]),
        ("\u0301a a'\u0301b", ["a", "a", "b"]),
        ("❤\ufe0f x", ["x"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert units.words(text) == words


def test_lines_and_paragraphs() -> None:
    text = "\n一 \n\u3000二\n \n\n三\n"
    assert units.lines(text) == ["一", "二", "三"]
    assert units.paragraphs(text) == ["一 \n\u3000二", "三"]
    assert units.lines("") == units.paragraphs(" \n ") == []


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        ("……", []),
        ("甲。乙。", ["甲。", "乙。"]),  # nltk #1824
        ("她说：“好！”他走了……没回头；", ["她说：“好！”", "他走了……", "没回头；"]),
        ('Pi is 3.14. "Is it?" Yes', ["Pi is 3.14.", '"Is it?"', "Yes"]),
        ("node.js 很快", ["node.js 很快"]),
        ("标题\n\n正文", ["标题", "正文"]),
        ("hard\nwrapped.", ["hard\nwrapped."]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert units.sentences(text) == sentences


@given(TEXT)
def test_count_classes(text: str) -> None:
    classes = (np.arange(0x110000) % 7).astype(np.uint8)
    counts = units.count_classes(*string_buffers(pa.array(["é", text])), classes, 7)
    assert counts[1].tolist() == [sum(ord(char) % 7 == i for char in text) for i in range(7)]


@pytest.mark.parametrize(
    ("bit", "inside", "outside"),
    [
        (units.HAN, "一龥㐀々〇豈𠀀", "。、あア한A1"),
        (units.KANA, "ぁんァヴーｱ", "一한A。"),
        (units.HANGUL, "가힣ㄱ", "一あA"),
        (units.LATIN, "aZéßＡ", "一あ한й1"),
        (units.LETTER, "aй一あ한", "1²。"),
        (units.WORD, "a1²٣", "_-。😀"),
        (units.SPACE, " \t\n\u3000\xa0", "a\u200b"),
    ],
)
def test_classes(bit: int, inside: str, outside: str) -> None:
    assert [char for char in inside if not units.CLASSES[ord(char)] & bit] == []
    assert [char for char in outside if units.CLASSES[ord(char)] & bit] == []


def test_classes_agree_with_python() -> None:
    for code in (*range(0x3400), *range(0xA000, 0xD800), *range(0xE000, 0x11000)):
        char, bits = chr(code), int(units.CLASSES[code])
        if unicodedata.category(char) != "Cn" and not bits & units.SINGLE:
            assert (bits & units.LETTER != 0) == char.isalpha(), hex(code)
            assert (bits & units.WORD != 0) == char.isalnum(), hex(code)
            assert (bits & units.SPACE != 0) == char.isspace(), hex(code)
