from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import segmenters, text
from filters.segmenters import cutter, version, words, words_by

TEXT = st.text(
    st.sampled_from("aB9你好天气のー한'\u0301\ufe0f\U000e0100 \n。.😀々〇")
    | st.characters(codec="utf-8")
)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    cutter.cache_clear()
    yield
    cutter.cache_clear()


@given(TEXT)
def test_han_characters_are_the_words_of_all_signals(string: str) -> None:
    assert words(string) == words_by(list, string) == text.words(string)


@given(TEXT)
def test_real_words_leave_no_character_out(string: str) -> None:
    pytest.importorskip("rjieba")
    assert "".join(words(string, "jieba")) == "".join(text.words(string))


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("", ""),
        ("。！😀", ""),
        ("他来到北京清华大学", "他 来到 北京 清华大学"),
        ("小明硕士毕业于中国科学院计算所", "小明 硕士 毕业 于 中国科学院 计算所"),
        ("他用Python3写don't，天气好。", "他 用 Python3 写 don't 天气 好"),
        ("葛\U000e0100城", "葛\U000e0100 城"),
    ],
)
def test_jieba(string: str, expected: str) -> None:
    pytest.importorskip("rjieba")
    assert words(string, "jieba") == expected.split()


def test_a_recipe_gets_the_segmenter_itself() -> None:
    pytest.importorskip("rjieba")
    assert cutter("jieba")("天气，好 a.b") == ["天气", "，", "好", " ", "a.b"]
    assert version("jieba").startswith("jieba by rjieba 0.")
    assert version("han") == "han"


def test_an_unknown_segmenter() -> None:
    with pytest.raises(ValueError, match="no segmenter 'pkuseg'; known: han, jieba"):
        words("好", "pkuseg")


def test_a_segmenter_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_rjieba(name: str, *arguments: Any) -> Any:
        if name == "rjieba":
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_rjieba)
    assert words("好", "han") == ["好"]
    with pytest.raises(ModuleNotFoundError) as caught:
        segmenters.words("好", "jieba")
    assert "pip install 'assay[segmenter]'" in str(caught.value)
