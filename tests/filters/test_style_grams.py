from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.evidence import MOST
from filters.segments import Texts
from filters.style_grams import LANGUAGES, entries, folded_words, trie, weigh_style

WEIGHTS = {(lang, tuple(folded_words(phrase))): weight for lang, phrase, weight in entries()}
LONGEST = max(len(row) for _, row in WEIGHTS)
PHRASES = [phrase for _, phrase, _ in entries()]
TEXT = st.lists(st.sampled_from([*PHRASES[::5], "IT'S", "it’s", "這", "x", "，", "\n"])).map(
    " ".join
) | st.lists(st.sampled_from([*PHRASES[-200:], "。"])).map("".join)


def weighed(text: str, language: str) -> tuple[float, list[str]]:
    found = Texts(pa.array([text], pa.string())).segments.words
    languages = np.array([LANGUAGES.index(language)], np.int32)
    sums, shown = weigh_style(found, languages, trie())
    return float(sums[0]), [PHRASES[row] for row in shown[0] if row >= 0]


def defined(text: str, language: str) -> tuple[float, set[float]]:
    found = folded_words(text)
    rows = [
        (language, tuple(found[at : at + size]))
        for at in range(len(found))
        for size in range(1, LONGEST + 1)
        if at + size <= len(found)
    ]
    long = {row for row in rows if row in WEIGHTS and len(row[1]) > 1}
    weights = sorted((WEIGHTS[row] for row in long), reverse=True)[:MOST]
    return sum(WEIGHTS.get(row, 0) for row in rows), set(weights)


@given(TEXT, st.sampled_from(LANGUAGES))
def test_equals_definition(text: str, language: str) -> None:
    total, shown = weighed(text, language)
    expected, weights = defined(text, language)
    assert total == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert len(shown) == len(set(shown)) <= MOST
    assert {WEIGHTS[language, tuple(folded_words(phrase))] for phrase in shown} == weights


def test_case_script_and_apostrophes_are_folded() -> None:
    assert weighed("It’s", "en") == weighed("it's", "en") != (0, [])
    assert weighed("不僅", "zh") == weighed("不仅", "zh")


def test_a_row_is_of_one_language_and_weighs_something() -> None:
    assert {lang for lang, _ in WEIGHTS} == set(LANGUAGES)
    assert len(WEIGHTS) == len(PHRASES)
    assert all(weight > 0 for weight in WEIGHTS.values())
    assert weighed("it's", "zh") == (0, [])


def test_huge_texts() -> None:
    for text in ("", "的" * 200_000, "it's " * 50_000):
        for language in LANGUAGES:
            assert np.isfinite(weighed(text, language)[0])
