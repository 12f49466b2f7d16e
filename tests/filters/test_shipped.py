"""One look for all lists: what it finds of each is what the list would find alone."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import disguises
from filters.automaton import Automaton, automaton
from filters.matching import Matches, find
from filters.segments import Texts
from filters.shipped import (
    CATEGORIES,
    ORDINARY,
    UNSAFE,
    ad_entries,
    ad_forms,
    shipped,
    unsafe_entries,
)

ORDINARY_PHRASES = [
    row[0]
    for row in (line.split("\t") for line in UNSAFE.read_text(encoding="utf-8").splitlines())
    if row[2] == ORDINARY
]
PIECES = st.sampled_from(
    [
        *(entry.phrase for entry in ad_entries()[::23]),
        *(entry.phrase for entry in unsafe_entries()[::19]),
        *ORDINARY_PHRASES[::3],
        *"加微信的了，。 \n❤- a1",
    ]
)


@pytest.fixture(scope="module")
def alone() -> tuple[Automaton, Automaton]:
    return automaton(ad_forms(), [0] * len(ad_entries())), automaton(
        disguises.forms([entry.phrase for entry in unsafe_entries()]),
        [CATEGORIES.index(entry.category) for entry in unsafe_entries()],
        ORDINARY_PHRASES,
    )


def rows(matches: Matches) -> list[tuple[int, ...]]:
    return [tuple(map(int, row)) for row in zip(*matches, strict=True)]


@given(st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=3))
def test_each_list_as_if_alone(alone: tuple[Automaton, Automaton], texts: list[str]) -> None:
    batch = Texts(pa.array(texts, pa.string()))
    found = shipped(batch)
    assert rows(found.ads) == rows(find(batch, alone[0]))
    assert rows(found.unsafe) == rows(find(batch, alone[1]))


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("请加薇。", "加薇"),  # an entry of its own, of another weight than 加微信
        ("请加伽薇信", "薇信"),
        ("请巍信", "微信"),
        ("威❤信", "微信"),
        ("有威信的人", ""),  # prestige
        ("加扣：1", "加qq"),
    ],
)
def test_disguises_of_advertisements(text: str, phrase: str) -> None:
    found = shipped(Texts(pa.array([text]))).ads
    phrases = [ad_entries()[entry].phrase for entry in found.entries]
    assert phrases[:1] == ([phrase] if phrase else [])


def test_an_ordinary_word_of_one_list_is_none_of_the_other() -> None:
    assert "垃圾回收" in ORDINARY_PHRASES
    found = shipped(Texts(pa.array(["垃圾回收"])))
    assert [ad_entries()[entry].phrase for entry in found.ads.entries] == ["回收"]
    assert len(found.unsafe.entries) == 0
