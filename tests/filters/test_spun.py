"""Words swapped for others of their meaning, by a plain definition."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.han_words import WORDS as COUNTS
from filters.segments import Texts
from filters.spun import CUT, SOME_WORDS, STEEPNESS, USUAL_CHOICE, measure
from filters.synonyms import LONGEST, MOST_WEIGHT, SETS, synonyms, weigh_choices, weights
from kernels.han import TRADITIONAL_TO_SIMPLIFIED

FOLDED = str.maketrans(TRADITIONAL_TO_SIMPLIFIED)
USUAL = "他们因为学校已经决定考试的时间，所以学生都很高兴，可以在家里休息，然后开始准备。"
SWAPPED = "伊们因由学堂业已决意测验的时辰，是以学徒都甚为欣喜，足以在屋里歇息，随后肇始筹备。"


def by_definition(text: str) -> tuple[float, int, int, int]:
    """Sum of weights and number of different words, characters of all of them, and Han."""
    text = text.translate(FOLDED)
    found: dict[str, float] = {}
    at = chars = 0
    while at < len(text):
        sizes = range(min(LONGEST, len(text) - at), 1, -1)
        size = next((n for n in sizes if text[at : at + n] in weights()), 0)
        if size:
            found[text[at : at + size]] = weights()[text[at : at + size]]
            chars += size
        at += size or 1
    num_han = sum("\u4e00" <= char <= "\u9fff" for char in text)
    return sum(found.values()), len(found), chars, num_han


def counted(text: str) -> tuple[float, int, int, int]:
    texts = Texts(pa.array([text], pa.string()))
    sums, counts, _ = weigh_choices(texts.data, texts.offsets, np.ones(1, np.bool_), synonyms())
    return float(sums[0]), *map(int, counts[0])


WORDS = st.sampled_from(
    [*list(weights())[::40], "學習", "机器", "好", "abc", "，", " ", "\n", "㐀", "😀"]
)


@given(st.lists(WORDS, max_size=30).map("".join))
def test_words_are_counted_as_the_definition_says(text: str) -> None:
    expected = by_definition(text)
    found = counted(text)
    assert found[1:] == expected[1:]
    assert found[0] == pytest.approx(expected[0], abs=1e-4)


def test_a_weight_is_what_drawing_explains_better_than_custom() -> None:
    rows = (line.split("\t") for line in COUNTS.read_text("utf-8").splitlines())
    counts = {word: int(count) for word, count in rows}
    together = {"因由"}
    for line in SETS.read_text("utf-8").splitlines():
        if "因由" in line.split():
            together |= set(line.split())
    share = counts["因由"] / sum(counts[word] for word in together)
    expected = min(MOST_WEIGHT, math.log(1 / len(together) / share))
    assert weights()["因由"] == pytest.approx(expected)
    assert all(-MOST_WEIGHT <= weight <= MOST_WEIGHT for weight in weights().values())


def test_rare_choices_tell_and_name_themselves() -> None:
    texts = Texts(pa.array([USUAL * 3, SWAPPED * 3, "", "a usual text", SWAPPED]))
    found = measure(texts, {"lang": pa.array(["zh", "zh", "zh", "en", "zh"])})
    choice, score = found["choice"].to_pylist(), found["score"].to_pylist()
    total, number, _, _ = by_definition(SWAPPED)
    expected = (total + SOME_WORDS * USUAL_CHOICE) / (number + SOME_WORDS)
    assert choice[1] == pytest.approx(expected, abs=1e-4)
    assert choice[4] == choice[1], "a word counts once"
    assert score[1] == pytest.approx(1 / (1 + math.exp(-STEEPNESS * (expected - CUT))), abs=1e-4)
    assert score[0] < 0.01 < 0.9 < score[1]
    assert (score[2], score[3], choice[3]) == (0, None, None)
    evidence = found["evidence"].to_pylist()
    assert (evidence[0], evidence[3]) == ([], [])
    assert len(evidence[1]) == 8
    assert [weights()[word] for word in evidence[1]] == sorted(map(weights().get, evidence[1]))[
        ::-1
    ]
