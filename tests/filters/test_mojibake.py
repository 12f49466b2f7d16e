from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.mojibake import (
    _LEADS,
    CEILING,
    COMMON,
    FOREIGN,
    GOES_ON,
    LATIN,
    MARKS,
    PAIRS,
    THRESHOLD,
    wrong_chars,
)
from filters.segments import Texts

LAW = "数据决定模型的上限，清洗数据是第一步。"
POEM = "朝辭白帝彩雲間，千里江陵一日還。兩岸猿聲啼不住，輕舟已過萬重山。"
LETTER = "It’s a café – isn’t it? “Yes,” she said…"
PIECES = [
    "a",
    " ",
    "\n",
    "的",
    "上",
    "鈥",
    "鐨",
    "锟斤",
    "拷",
    "�",
    "é",
    "Ã©",
    "â€™",
    "ï",
    "»",
    "😀",
]
TEXT = st.lists(
    st.sampled_from([*PIECES, "鍐冲畾", "·", "あ", "烫烫", "ðŸ˜€", "\x9c", "鑴犵"])
).map("".join)


def counts(text: str) -> list[int]:
    texts = Texts(pa.array([text], pa.string()))
    found: list[int] = wrong_chars(texts.data, texts.offsets)[0][0].tolist()
    return found


def weight(char: str) -> int:
    return int(MARKS[ord(char)]) >> 5 if ord(char) < 0x10000 else 0


def defined(text: str) -> list[int]:
    """The three counts, from the words of the module's header."""
    sequences, at = 0, 0
    while at < len(text):
        rest = text[at + 1 : at + 1 + _LEADS.get(text[at], 9)]
        goes_on = [ord(c) < len(GOES_ON) and GOES_ON[ord(c)] == 1 for c in rest]
        if text[at] == "鈥":
            found = 1
        elif len(rest) == _LEADS.get(text[at]) and all(goes_on):
            found = 1 + len(rest)
        else:
            found = 2 * (text[at : at + 2] in PAIRS)
        sequences += found
        at += max(found, 1)
    strangers = total = pending = 0
    before = ""  # the last character that was looked at: none after a break in the sum
    for char in text:
        if char.isascii():
            total = max(total + COMMON, 0)
            continue
        if total == 0:
            pending = 0
            if (
                weight(char) == COMMON
                and 0x800 <= ord(char) < 0x10000
                and int(MARKS[ord(char)]) & 31 == 0
            ):
                continue
        here = weight(char) if char != before else min(weight(char), 0)
        before = char
        total = max(total + here, 0)
        pending += char != "\ufffd"
        if total >= THRESHOLD and here >= LATIN:
            strangers += pending
            pending = 0
            total = min(total, CEILING)
    return [text.count("\ufffd"), sequences, strangers]


@given(TEXT)
def test_equals_definition(text: str) -> None:
    assert counts(text) == defined(text)


def test_weights() -> None:
    assert [weight(char) for char in "的說々あЖé鐨。🙂"] == [
        *(COMMON, COMMON, COMMON, FOREIGN, FOREIGN, LATIN, 30, COMMON, 0)
    ]
    assert {"锟斤", "â€"} <= PAIRS


@pytest.mark.parametrize(
    "text", [LAW, POEM, LETTER, "", "é", "哒哒哒哒哒哒哒", "Fuß« und «été»", "НАЧАЛО"]
)
def test_sound_text_has_none(text: str) -> None:
    assert counts(text) == [0, 0, 0]


@pytest.mark.parametrize(
    ("text", "codec", "other", "expected"),
    [
        (LAW, "utf-8", "gb18030", [3, 0, 26]),
        (LAW, "gb18030", "latin-1", [0, 0, 38]),
        (LAW, "gb18030", "big5", [0, 0, 12]),
        (LETTER, "utf-8", "cp1252", [1, 19, 0]),
        (LETTER, "utf-8", "gb18030", [3, 6, 0]),
        (LETTER, "utf-8", "mac-roman", [0, 14, 0]),
        (LETTER, "cp1252", "utf-8", [7, 0, 0]),
    ],
)
def test_codecs(text: str, codec: str, other: str, expected: list[int]) -> None:
    assert counts(text.encode(codec).decode(other, "replace")) == expected


def test_huge_texts_take_linear_time() -> None:
    for text in (
        "的" * 200_000,
        "鐨勬" * 100_000,
        "Ã" * 200_000,
        "\ufffd" * 200_000,
        " " * 200_000,
    ):
        assert counts(text)[0] == text.count("\ufffd")
