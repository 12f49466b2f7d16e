"""Spellings of an entry: which there are, and that they are found."""

from __future__ import annotations

import pyarrow as pa
import pytest

from filters.automaton import Form, automaton
from filters.disguises import FILE, MAX_SPELLINGS, forms
from filters.matching import find
from filters.segments import Texts


def found(text: str, *entries: str) -> list[int]:
    built = automaton(forms(entries), list(range(len(entries))))
    return sorted(find(Texts(pa.array([text])), built).entries.tolist())


@pytest.mark.parametrize(
    "text", ["加微信", "加薇：", "加 v", "+VX：123", "➕薇", "加薇❤信", "加威❤️信", "加vx", "加Ｖ信"]
)
def test_a_phrase_in_disguise(text: str) -> None:
    assert 0 in found(text, "加微信")


@pytest.mark.parametrize("text", ["加威信", "参加微软", "加value", "威信", "树立威信"])
def test_what_only_looks_like_one(text: str) -> None:
    assert found(text, "加微信", "微信") == []


def test_vx() -> None:
    assert found("VX: abc", "微信") == [0]


def test_digits_for_letters_only_where_asked() -> None:
    assert found("v1agra V1@gr4 viagra", "viagra~") == [0, 0, 0]
    assert found("v1agra viagra", "viagra") == [0]


def test_forms() -> None:
    assert forms(["ai", "to~"]) == [
        Form(0, "ai"),
        Form(1, "to"),
        Form(1, "7o"),
        Form(1, "t0"),
        Form(1, "70"),
    ]
    assert len(forms(["sossossossossossos~"])) == 1 + MAX_SPELLINGS


def test_the_table() -> None:
    rows = [line.split("\t") for line in FILE.read_text(encoding="utf-8").splitlines()]
    for phrase, spellings in rows:
        assert len(set(spellings.split())) == len(spellings.split())
        assert phrase not in spellings.split()
