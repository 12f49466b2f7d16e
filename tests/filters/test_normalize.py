from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.normalize import COLUMNS, NOTHING, is_plain, normalize

# Surrogates too: JSON's "\ud800" is a legal str in Python.
TEXT = st.text(
    st.sampled_from(
        "a好。\r\n\r\n\t\0\ufeff\u2028\u2029\x85\x0b\x0c\x1b\x1c\x1f\x7f\x9f\ud83d\ude00"
    )
    | st.characters(codec=None, exclude_categories=[])
)


def counted(text: str) -> tuple[str, dict[str, int]]:
    result, counts = normalize(text)
    assert len(counts) == len(COLUMNS)
    return result, {name: n for name, n in zip(COLUMNS, counts, strict=True) if n}


@pytest.mark.parametrize(
    ("text", "result", "counts"),
    [
        ("", "", {}),
        ("你好，world\n\t“１①”\u3000\xa0", "你好，world\n\t“１①”\u3000\xa0", {}),
        ("a\r\nb\rc\n\rd", "a\nb\nc\n\nd", {"num_crlf": 1, "num_cr": 2}),
        ("a\u2028b\u2029c\x85d", "a\nb\nc\nd", {"num_unicode_newlines": 3}),
        ("\ufeffa\ufeff\0\0", "a", {"num_bom": 2, "num_nul": 2}),
        ("page one\fpage two\v3", "page one\npage two\n3", {"num_unicode_newlines": 2}),
        ("a\n\fb", "a\n\nb", {"num_unicode_newlines": 1}),
        ("a\x1cb\x1dc\x1ed", "a\nb\nc\nd", {"num_unicode_newlines": 3}),
        ("a\x1fb", "a b", {"num_control": 1}),
        ("a\x08\x1b[0m\x7f\x80", "a[0m", {"num_control": 4}),
        ("\ud800", "\ufffd", {"num_surrogates": 1}),
        ("\ud83d\ude00\ude00", "😀\ufffd", {"num_surrogates": 1}),
        ("\r\0\n", "\n", {"num_crlf": 1, "num_nul": 1}),
    ],
)
def test_values(text: str, result: str, counts: dict[str, int]) -> None:
    assert counted(text) == (result, counts)


@given(TEXT)
def test_second_call_changes_nothing(text: str) -> None:
    once = normalize(text)[0]
    assert counted(once) == (once, {})


@given(TEXT)
def test_no_line_or_word_is_glued_to_the_next(text: str) -> None:
    """As str sees them, where nothing that it does not know is taken out."""
    text = re.sub("[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff\ud800-\udfff]", "", text)
    result = normalize(text)[0]
    assert result.splitlines() == text.replace("\x1f", " ").splitlines()
    assert result.split() == text.split()


@given(TEXT)
def test_result_is_text_and_keeps_all_the_rest(text: str) -> None:
    result = normalize(text)[0]
    result.encode()  # no surrogate left
    text = text.replace("\x1f", " ")
    odd = "[\0-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffd\U00010000-\U0010ffff]"
    assert re.sub(odd, "", result) == re.sub(odd, "", text)
    assert re.findall("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]", result) == []


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@given(st.lists(TEXT | st.text("水a \n\ufffd\u3000é", max_size=4)))
def test_a_plain_text_needs_no_look(texts: list[str]) -> None:
    for text, plain in zip(texts, is_plain(list(map(encoded, texts))), strict=True):
        if plain:
            assert normalize(text) == (text, NOTHING)
            assert text.strip()
            assert "\ufffd" not in text


@pytest.mark.parametrize("around", ["", "a", "é", "水", "😀"])
def test_every_character_that_needs_a_look_gets_one(around: str) -> None:
    odd = [chr(code) for code in range(0x110000) if normalize(chr(code))[1] != NOTHING]
    blank = [chr(code) for code in range(0x110000) if chr(code).isspace()]
    assert len(odd) == 2048 + 30 + 33 + 3  # surrogates; C0; DEL, C1; U+2028 2029 FEFF
    look = [around + char + around for char in [*odd, "\ufffd"]]
    look += [char for char in blank if not around]
    assert not is_plain(list(map(encoded, look))).any()


def test_common_text_is_plain() -> None:
    texts = ["水", "a", "\tone\n", "好。\n\n“引”", "é1", "😀", "한국어", "x" * 100_000]
    assert is_plain(list(map(encoded, texts))).all()
    assert is_plain([]).tolist() == []
    assert is_plain([b"", b"a", b""]).tolist() == [False, True, False]
