"""Evaluation items in documents: the kernels against the definition, golden cases, borders."""

from __future__ import annotations

import time
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlap_definition import entries, found_in, ngrams, placed_words

from dedup.item_index import MAX_ENTRIES, ItemIndex, build_index, ngrams_of
from dedup.overlap import find
from dedup.placed_words import Length
from kernels.arrow import string_buffers

PIECES = (
    *("a", "B", "word", "Ａ", "é", "e\u0301", "½", "㈠", "1", "don't", "ß", "か\u3099", "ﷺ"),
    *("的", "我", "龍", "龙", "𠀀", "カ", "ー", "한국", "हिन्दी"),
    *(
        " ",
        "  ",
        "\n",
        "\r\n",
        "，",
        "。",
        ".",
        "\u200d",
        "\u0301",
        "\ufeff",
        "\xad",
        "😀",
        "👍🏽",
        "\u200b",
    ),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
LENGTHS = st.sampled_from([Length(1, 1), Length(2, 3), Length(3, 2), Length(4, 4), Length(8, 10)])
Items = list[tuple[str, str]]


def index_of(items: Items, length: Length) -> ItemIndex:
    questions, others = ([item[i] for item in items] for i in (0, 1))
    return build_index(pa.array(questions, pa.string()), pa.array(others, pa.string()), length)


def found(documents: list[str], items: Items, length: Length) -> list[tuple[int, ...]]:
    texts = pa.array(documents, pa.string())
    columns = find(index_of(items, length), *string_buffers(texts))
    return list(zip(*(column.tolist() for column in columns), strict=True))


def defined(documents: list[str], items: Items, length: Length) -> list[tuple[float, ...]]:
    return [
        (d, e, float(np.float32(share)), start, end)
        for d, e, share, start, end in found_in(documents, items, length)
    ]


@given(st.lists(TEXTS, max_size=3), st.lists(st.tuples(TEXTS, TEXTS), max_size=4), LENGTHS)
def test_what_is_found_is_the_definition(
    documents: list[str], items: Items, length: Length
) -> None:
    documents = [*documents, *(f"{question} {other}" for question, other in items)]
    assert found(documents, items, length) == defined(documents, items, length)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4), LENGTHS)
def test_what_is_counted_is_the_definition(items: Items, length: Length) -> None:
    index, known = index_of(items, length), entries(items, length)
    assert index.counted.tolist() == [len(entry.counted) for entry in known]
    assert index.asked.tolist() == [len(entry.asked) for entry in known]
    assert index.questions.tolist() == [entry.question for entry in known]


@given(st.lists(TEXTS, max_size=4), LENGTHS)
def test_ngrams_are_the_definition(texts: list[str], length: Length) -> None:
    _, sizes, offsets, words = ngrams_of(pa.array(texts, pa.string()), length)
    rows = [ngrams(placed_words(text), length) for text in texts]
    assert sizes.tolist() == [len(ngram) for row in rows for ngram in row]
    assert np.diff(offsets).tolist() == [len(row) for row in rows]
    assert words.tolist() == [len(placed_words(text)) for text in texts]


# --- golden ---------------------------------------------------------------------------------------

EN = ("Which of these gases do plants take in when they make sugar?", "carbon dioxide or argon")
ZH = ("植物在制造糖分的时候吸收下面哪一种气体？", "二氧化碳，还是氩气")
PAGE_EN = f"A page. {EN[0].upper()}\n\nA) {EN[1]}! And so on."
PAGE_ZH = "一頁。植物在製造糖分的時候，吸收下面哪一種氣體？A．二氧化碳；B．還是氬氣。完"
USUAL = Length(8, 10)


def spans(document: str, items: Items, length: Length = USUAL) -> list[tuple[int, float, str]]:
    """Entry, share, the bytes found."""
    return [
        (entry, round(share, 3), document.encode()[start:end].decode())
        for _, entry, share, start, end in found([document], items, length)
    ]


def test_an_item_in_other_dress_is_found_with_its_span() -> None:
    assert spans(PAGE_EN, [EN, ZH]) == [(0, 1.0, EN[0].upper().removesuffix("?"))]
    assert spans(PAGE_ZH, [EN, ZH]) == [(1, 1.0, "植物在製造糖分的時候，吸收下面哪一種氣體")]


def test_a_changed_word_parts_nothing() -> None:
    words = [f"w{n}" for n in range(40)]
    changed = [*words[:20], "other", *words[21:]]
    assert spans(" ".join(changed), [(" ".join(words), "")]) == [(0, 0.975, " ".join(changed))]
    characters = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏"
    changed_zh = characters[:12] + "的" + characters[13:]
    assert spans(changed_zh, [(characters, "")]) == [(0, 0.958, changed_zh)]


def test_what_stands_far_apart_is_not_added_up() -> None:
    words = [f"w{n}" for n in range(40)]
    far = [*words[:20], *("between",) * 9, *words[20:]]
    near = [*words[:20], *("between",) * 10, *words[20:]]
    assert [share for _, share, _ in spans(" ".join(near), [(" ".join(words), "")])] == [1.0]
    apart = spans(" ".join([*far, *("x",) * 2]), [(" ".join(words), "")])
    assert [share for _, share, _ in apart] == [1.0]
    further = [*words[:20], *("between",) * 11, *words[20:]]
    assert [share for _, share, _ in spans(" ".join(further), [(" ".join(words), "")])] == [
        0.5,
        0.5,
    ]


def test_the_question_alone_is_the_item() -> None:
    long = (EN[0], " ".join(f"choice{n}" for n in range(60)))
    assert [share for _, share, _ in spans(EN[0], [long])] == [1.0]
    short = ("Which one is it?", long[1])  # has no n-gram: then all of the item counts
    assert spans(short[0], [short]) == []
    half = " ".join(f"choice{n}" for n in range(32))
    assert [share for _, share, _ in spans(half, [short])] == [0.5]


# --- borders --------------------------------------------------------------------------------------


def test_items_without_an_ngram_are_never_found() -> None:
    items = [("", ""), ("...", "😀"), ("too short to be told", ""), ("太短了", "")]
    assert index_of(items, USUAL).counted.tolist() == [0, 0, 0, 0]
    assert found(["too short to be told", "太短了", "", "😀"], items, USUAL) == []
    assert found(["any text at all that is long enough to have one"], [], USUAL) == []


def test_an_item_is_a_whole_document_and_stands_twice() -> None:
    assert spans(EN[0], [EN]) == [(0, 1.0, EN[0][:-1])]
    twice = f"{EN[0]} {'and then some other words ' * 9}{EN[0]}"
    assert [share for _, share, _ in spans(twice, [EN])] == [1.0, 1.0]


def test_overlapping_items_are_each_found() -> None:
    words = [f"w{n}" for n in range(30)]
    items = [(" ".join(words[:20]), ""), (" ".join(words[10:]), "")]
    assert spans(" ".join(words), items) == [
        (0, 1.0, " ".join(words[:20])),
        (1, 1.0, " ".join(words[10:])),
    ]


def test_what_many_items_share_is_not_theirs() -> None:
    ask = "choose the one answer to the question below that is right and say why"
    items = [(f"{ask} {' '.join(f'q{n}x{k}' for k in range(12))}", "") for n in range(11)]
    assert len(items) == MAX_ENTRIES + 1
    assert found([ask], items, USUAL) == []
    assert [share for _, share, _ in spans(items[3][0], items)] == [1.0]
    assert len(found([ask], items[1:], USUAL)) == MAX_ENTRIES
    only = [*items, (ask, "")]
    assert index_of(only, USUAL).counted.tolist()[-1] == 0


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028", "\u3000"])
def test_line_ends_change_nothing(end: str) -> None:
    text = EN[0].replace(" ", end)
    assert [share for _, share, _ in spans(f"😀{text}👍🏽", [EN])] == [1.0]


def test_spans_begin_and_end_on_characters() -> None:
    accents = unicodedata.normalize("NFD", "café résumé naïve façade élan rolé éclair crèmé")
    assert spans(f"x {accents} y", [("café résumé naïve façade élan rolé éclair crèmé", "")]) == [
        (0, 1.0, accents)
    ]


def test_repetition_is_linear() -> None:
    items = [("a " * 5_000, ""), ("哈" * 5_000, "")]
    began = time.process_time()
    hits = found(["a " * 100_000, "哈" * 100_000], items, USUAL)
    assert time.process_time() - began < 5
    assert [(d, e, share) for d, e, share, _, _ in hits] == [(0, 0, 1.0), (1, 1, 1.0)]
