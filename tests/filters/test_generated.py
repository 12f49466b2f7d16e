from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.generated import COEFFICIENTS, COLUMNS, FEATURES, LEFTOVER, measure
from filters.page_shape import SHAPE, USUAL, page_shapes
from filters.segments import Texts
from filters.stock_phrases import KINDS, LANGUAGES, count_stock, entries
from filters.text import words

PHRASES = [phrase for _, _, phrase in entries()]
PIECES = [
    *PHRASES[::7],
    "首",
    "先",
    "不",
    "仅",
    "我",
    "i",
    "is",
    "not",
    "just",
    "A",
    "，",
    ", ",
    "\n",
    "’",
]
TEXT = st.lists(st.sampled_from([*PIECES, " "]), max_size=30).map(" ".join) | st.lists(
    st.sampled_from(PIECES), max_size=30
).map("".join)


def counted(text: str, language: str) -> list[int]:
    found = Texts(pa.array([text], pa.string())).segments.words
    counts, _ = count_stock(found, np.array([LANGUAGES.index(language)], np.int32))
    row: list[int] = counts[0].tolist()
    return row


def defined(text: str, language: str) -> list[int]:
    """At each word the longest phrase that begins there; then what comes after it."""
    listed = {
        tuple(words(phrase.replace("'", mark).translate(LOWER))): KINDS.index(kind)
        for kind, lang, phrase in entries()
        if lang == language
        for mark in "'’"
    }
    found = [word.translate(LOWER) for word in words(text)]
    counts = [0] * len(KINDS)
    at = 0
    while at < len(found):
        sizes = [n for n in range(12, 0, -1) if tuple(found[at : at + n]) in listed]
        if sizes:
            counts[listed[tuple(found[at : at + sizes[0]])]] += 1
        at += sizes[0] if sizes else 1
    return counts


LOWER = {ord("A") + i: ord("a") + i for i in range(26)}


@given(TEXT, st.sampled_from(LANGUAGES))
def test_phrases_equal_definition(text: str, language: str) -> None:
    lowered = [phrase.translate(LOWER) for phrase in PHRASES]
    assert counted(text, language) == defined(text, language)
    assert len(set(lowered)) == len(PHRASES)


def row(text: str, lang: str) -> dict[str, object]:
    columns = measure(Texts(pa.array([text], pa.string())), {"lang": pa.array([lang])})
    assert list(columns) == list(COLUMNS)
    return {name: pa.array(column).to_pylist()[0] for name, column in columns.items()}


def test_leftovers_are_near_certain() -> None:
    assert row("As an AI language model, I can't.", "en")["score"] == pytest.approx(LEFTOVER)
    assert row("抱歉，我无法回答。", "zh")["num_leftovers"] == 1
    assert row("Certainly, here is the letter.", "en")["num_leftovers"] == 0


@pytest.mark.parametrize(
    "text", ["", "a", "的", "。", "Hello there.", "首先", "x" * 200_000, "的" * 200_000]
)
def test_nothing_is_said_of_what_has_no_phrases(text: str) -> None:
    for lang in LANGUAGES:
        found = row(text, lang)
        assert isinstance(found["score"], float)
        assert 0 <= found["score"] < 0.5
        assert found["evidence"] == []


def test_one_phrase_however_often_is_not_enough() -> None:
    text = "他是一个真正的朋友，真正懂得音乐，也真正爱这座城市。" * 3
    assert row(text, "zh")["score"] == pytest.approx(0.49)
    assert row("然而，" + text, "zh")["evidence"] == ["然而", "真正", "是一"]  # each once


def test_other_languages_have_no_score() -> None:
    assert row("Hallo.", "de")["score"] is None


def test_evidence_are_the_first_phrases_of_a_flagged_text() -> None:
    text = (
        "总之，不仅要学会休息，更是要保持内心的平衡。首先，合理安排时间有助于提升效率。"
        "其次，不妨尝试新的体验，拥抱挑战。值得注意的是，用心陪伴至关重要。"
    )
    found = row(text, "zh")
    assert isinstance(found["evidence"], list)
    assert found["evidence"][:4] == ["总之", "不仅", "更是", "保持"]
    assert len(found["evidence"]) == 8


def test_every_feature_has_a_coefficient() -> None:
    assert {len(row) for row in COEFFICIENTS.values()} == {len(FEATURES) + 1}
    assert tuple(COEFFICIENTS) == LANGUAGES


def test_shape_of_a_page() -> None:
    prose = "A sentence of eight words is here again. " * 3
    text = f"# Title\n{prose}\n{prose}\n{prose}{prose}\n- **One:** item.\n1. Two\n"
    texts = Texts(pa.array([text, "", "A line."], pa.string()))
    shapes = [
        dict(zip(SHAPE, shape.tolist(), strict=True))
        for shape in page_shapes(texts.data, texts.segments)
    ]
    chars = np.array([122, 122, 245])
    assert shapes[0] == pytest.approx(
        {
            "prose_lines": 3,
            "heading_share": 1 / 6,
            "list_share": 2 / 6,
            "bold_share": 1 / 6,
            "evenness": chars.std() / chars.mean(),
            "burstiness": 0,
        },
        abs=1e-6,
    )
    assert shapes[1]["evenness"] == shapes[2]["burstiness"] == USUAL


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "本文由机器翻译，仅供参考。"),
        ("en", "This page was machine-translated. The English text is the binding one."),
    ],
)
def test_a_page_that_says_that_a_machine_translated_it(language: str, text: str) -> None:
    found = measure(Texts(pa.array([text])), {"lang": pa.array([language])})
    assert np.asarray(found["num_leftovers"]).tolist() == [1]
    assert found["score"].to_pylist() == pytest.approx([LEFTOVER])
