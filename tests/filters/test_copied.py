"""Copied pages: which characters count, by a plain definition."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.copied import SHARES, measure
from filters.segments import Texts
from filters.text import CLASSES, HAN, LATIN

HIDDEN = "\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f"
HOLES = "＊■□▇"


def measured(text: str) -> dict[str, float]:
    found = measure(Texts(pa.array([text], pa.string())), {})
    return {name: float(np.asarray(found[name])[0]) for name in found if name != "evidence"}


def shares_by_definition(text: str) -> dict[str, float]:
    counts = dict.fromkeys(SHARES, 0)
    for run in re.finditer(f"[{HIDDEN}{HOLES}]+", text):
        before, after = text[: run.start()][-1:] or " ", text[run.end() :][:1] or " "
        kinds = [int(CLASSES[ord(char)]) for char in (before, after)]
        holes = len(re.findall(f"[{HOLES}]", run[0]))
        if all(kind & (HAN | LATIN) for kind in kinds):
            counts["hidden"] += len(run[0]) - holes
        if all(kind & HAN for kind in kinds):
            counts["hole"] += holes
    counts["private_use"] = len(re.findall(r"(?<=\S)[\ue000-\uf8ff\U000f0000-\U0010ffff]", text))
    counts["mixed_script"] = len(re.findall(r"(?<=[A-Za-z])[\u0400-\u052f]", text)) + len(
        re.findall(r"[\u0400-\u052f](?=[A-Za-z])", text)
    )
    return {f"{name}_share": count / max(len(text), 1) for name, count in counts.items()}


ALPHABET = ["中", "文", "a", "Z", " ", "\n", "о", "Я", "\ue000", "\U000f0000", "\u200b", "\ufeff"]
ALPHABET += ["\u200d", "□", "＊", "■", "é", "😀", "，", "\U000e0041", "α"]


@given(st.lists(st.sampled_from(ALPHABET), max_size=40).map("".join))
def test_shares_are_the_definition(text: str) -> None:
    found = measured(text)
    expected = shares_by_definition(text)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-6)


def test_one_phrase_is_a_third_and_two_are_half() -> None:
    assert measured("本章未完，请等一下。")["score"] == pytest.approx(1 / 3)
    assert measured("本章未完！天才一秒记住。")["score"] == pytest.approx(1 / 2)
    assert measured("下一章我们讲线性代数。")["score"] == pytest.approx(0.2)
    assert measured("这一章讲完了。")["score"] == 0


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("天 才 一 秒 记 住", 1 / 3),
        ("天 才 一 秒 记 住 笔 趣 阁", 1 / 2),
        ("笔*趣-阁 w w w . x x . c o m", 1 / 2),
        ("网址：ｗ ｗ ｗ．ｘ ｘ．ｃｏｍ", 1 / 3),
        ("ｗｗｗ．ｂｉｑｕｇｅ．ｃｏｍ", 1 / 3),
        ("www.example.com 上的说明", 0),
        ("w w 和 www 不同", 0),
    ],
)
def test_names_of_mirrors_may_be_spaced(text: str, score: float) -> None:
    assert measured(text)["score"] == pytest.approx(score)


def test_flags_and_families_of_emoji_hide_nothing() -> None:
    assert measured("👨\u200d👩\u200d👧 和 🏴\U000e0067\U000e007f")["score"] == 0


def test_long_runs_take_linear_time() -> None:
    for text in (
        "\u200b" * 200_000,
        "中" + "\u200b" * 200_000 + "文",
        "□" * 200_000,
        "\ue000" * 200_000,
    ):
        assert 0 <= measured(text)["score"] <= 1
