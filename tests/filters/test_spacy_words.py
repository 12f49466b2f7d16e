"""datatrove's words: spaCy's, for every text in time that grows with its length."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

pytest.importorskip("spacy", reason="the extra `faithful` is not installed")

from filters.spacy_words import LONG_RUN, _spacy, num_sentences, words  # after the skip


def test_words_and_sentences() -> None:
    assert words("Hello, world! It's 3.5km\r\n\tto the U.S. (well...)") == [
        *("Hello", ",", "world", "!", "It", "'s", "3.5", "km", "to", "the", "U.S."),
        *("(", "well", "...", ")"),
    ]
    assert words("") == words(" \n\u3000") == []
    assert [
        num_sentences(text) for text in ("", " ", "a", "It is. So be it! It", "甲。乙。", "...")
    ] == [*(1, 1, 1, 3, 1, 1)]


plain = _spacy().blank("en").tokenizer
marks = st.text(st.sampled_from("!…'\"s.+-_~()[]{}:;,$%/\\#@&*=km25°C漢。😀 \n"), max_size=90)


@given(st.one_of(marks, st.text(max_size=60), marks.map(lambda text: text * 3)))
@example("." * 200)
@example("a" + "." * 200 + "'s" * 40)
@example("…" * 80)
def test_the_ends_of_a_run_are_enough(text: str) -> None:
    expected = [token.text.strip() for token in plain(text)]
    assert words(text) == [word for word in expected if word]


@pytest.mark.parametrize("run", ["!", "'s", "a:", "http://", "-", "a"])
def test_a_long_run_takes_linear_time(run: str) -> None:
    text = (run * 2 * LONG_RUN)[: 2 * LONG_RUN]  # unbounded, the first takes two minutes
    begun = time.process_time()
    found = words(text)
    assert time.process_time() - begun < 20
    assert "".join(found) == text


def test_spacy_loads_no_torch() -> None:
    code = (
        "from filters.spacy_words import words; words('a'); import sys; "
        "assert 'torch' not in sys.modules; import importlib.util; "
        "assert importlib.util.find_spec('torch')"
    )
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)
