from __future__ import annotations

from kernels.han import TRADITIONAL_TO_SIMPLIFIED


def fold(text: str) -> str:
    return "".join(TRADITIONAL_TO_SIMPLIFIED.get(char, char) for char in text)


def test_folds_traditional_and_leaves_the_rest() -> None:
    assert fold("漢語的發展與頭髮，後來") == "汉语的发展与头发，后来"
    assert fold("汉语 Python 日本語の本😀") == "汉语 Python 日本语の本😀"


def test_folding_twice_changes_nothing() -> None:
    assert not set(TRADITIONAL_TO_SIMPLIFIED.values()) & TRADITIONAL_TO_SIMPLIFIED.keys()
    assert len(TRADITIONAL_TO_SIMPLIFIED) == 3222
