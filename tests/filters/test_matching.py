"""Phrases in texts: disguises, word borders, offsets; equal to the definition, and linear."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import json
import os
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from filters import disguises, shipped
from filters.automaton import Automaton, Form, automaton, plain
from filters.matching import find
from filters.segments import Texts
from filters.symbols import symbol, symbols

_spec = importlib.util.spec_from_file_location(
    "matching_definition", Path(__file__).with_name("matching_definition.py")
)
assert _spec is not None
assert _spec.loader is not None
definition = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(definition)

SOAK = "ASSAY_SOAK" in os.environ
PHRASES = "口交 做爱 微信 加v vx +v 色情 色情网站 性交 支那 性爱 阴道 赌博 约炮 91 国人".split()
FORMS = [
    *(Form(i, phrase) for i, phrase in enumerate(PHRASES)),
    Form(2, "威信", gapped=True),
    Form(len(PHRASES), "make money"),
    Form(len(PHRASES) + 1, "sex"),
    Form(len(PHRASES) + 2, "don't"),
]
ORDINARY = ["印度支那", "sex education"]
CATEGORIES = [0] * len(PHRASES) + [1, 1, 1]
BUILT = automaton(FORMS, CATEGORIES, ORDINARY)


def found(text: str, built: Automaton = BUILT) -> list[str]:
    matches = find(Texts(pa.array([text])), built)
    data = text.encode()
    return [data[b:e].decode() for b, e in zip(matches.begins, matches.ends, strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("路口交通拥堵", []),
        ("做爱国者", []),
        ("印度支那半岛", []),  # ordinary, by the list
        ("中国人", []),
        ("异性 交往", []),
        ("路口交\u200b通", []),
        ("路\u200b口交", []),  # what cannot be seen is no border, on either side
        ("性，交", []),
        ("去约炮兵连", []),
        ("威信", []),  # prestige
        ("加value", []),
        ("vxa sexy essex", []),
        ("make moneys", []),
        ("sex education", []),
        ("色", []),
        ("", []),
        ("他们做爱了", ["做爱"]),
        ("性爱情节", ["性爱"]),
        ("支那", ["支那"]),
        ("国人网络赌博机", ["国人", "赌博"]),
        ("賭博", ["賭博"]),
        ("色-情 色★情 色\u200b情 色. 情", ["色-情", "色★情", "色\u200b情", "色. 情"]),
        ("色....情", []),
        ("色情网站", ["色情网站"]),  # the longest
        ("微❤️信 威❤信", ["微❤️信", "威❤信"]),
        ("加 微 信", ["微 信"]),
        ("加Ｖ：abc 加v123 ➕v", ["加Ｖ", "加v", "➕v"]),
        ("VX12 ｖｘ vｘ 🆅🆇 ⓥⓧ", ["VX", "ｖｘ", "vｘ", "🆅🆇", "ⓥⓧ"]),
        ("Make\n   MONEY fast", ["Make\n   MONEY"]),
        ("SÉX! se\u00adx", ["SÉX", "se\u00adx"]),
        ("I don’t", ["don’t"]),
        ("91 1991 a91", ["91", "91"]),
    ],
)
def test_what_is_found(text: str, expected: list[str]) -> None:
    assert found(text) == expected


def test_offsets_are_bytes_of_the_batch() -> None:
    texts = pa.array(["x", "", "😀賭博", "色情 sex"])
    matches = find(Texts(texts), BUILT)
    assert matches.texts.tolist() == [2, 3, 3]
    assert matches.entries.tolist() == [12, 6, len(PHRASES) + 1]
    assert matches.begins.tolist() == [5, 11, 18]
    assert matches.ends.tolist() == [11, 17, 21]


def test_each_category_finds_its_own_longest() -> None:
    built = automaton([Form(0, "苹果"), Form(1, "苹果手机"), Form(2, "苹果")], [0, 1, 2])
    matches = find(Texts(pa.array(["买苹果手机"])), built)
    assert sorted(matches.entries.tolist()) == [0, 1, 2]


def test_an_entry_that_holds_an_ordinary_phrase_is_found() -> None:
    built = automaton([Form(0, "支那"), Form(1, "印度支那战争")], [0, 1], ["印度支那"])
    assert find(Texts(pa.array(["印度支那战争"])), built).entries.tolist() == [1]


@pytest.mark.parametrize(("phrase", "number"), [("", 0), ("色", 1), (" a ", 1), ("a" * 65, 65)])
def test_phrases_that_cannot_be_found(phrase: str, number: int) -> None:
    with pytest.raises(ValueError, match=f"has {number} characters; 2 to 64 can be found"):
        plain([phrase])


def test_no_phrases() -> None:
    assert found("色情 sex", plain([])) == []


def test_symbols_are_a_table() -> None:
    codes = [*range(0x3100), *range(0x4E00, 0xA000, 7), *range(0xFE00, 0x10000), 0x1F170, 0x20001]
    assert symbols()[codes].tolist() == [symbol(chr(code)) for code in codes]


PIECES = st.sampled_from(
    [*PHRASES, *"色情网站性交爱口路通国者威微信印度支那林道赌博，。❤.- \n\u200b\u3000vxVＶｘ9１é+",
     "make ", "money", "sex", " education", "️", "а", "賭", "😀", "\r\n", "x", "\x00"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=20))
@example("口交\ufe0f口交")
@settings(max_examples=600, deadline=None)
def test_equal_to_the_definition(text: str) -> None:
    matches = find(Texts(pa.array(["", text])), BUILT)
    places = list(itertools.accumulate((len(char.encode()) for char in text), initial=0))
    expected = [
        (entry, places[begin], places[end])
        for entry, begin, end in definition.find(text, FORMS, CATEGORIES, ORDINARY)
    ]
    triples = zip(matches.entries, matches.begins, matches.ends, strict=True)
    assert sorted((int(e), int(b), int(n)) for e, b, n in triples) == expected


@pytest.mark.skipif("ASSAY_SAMPLE" not in os.environ, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize("language", ["zh", "en"])
def test_equal_to_the_definition_on_real_text(language: str) -> None:
    """The first 300 characters of each document; the shipped list has enough hits in them."""
    rows = [line.split("\t") for line in shipped.UNSAFE.read_text(encoding="utf-8").splitlines()]
    listed = [row for row in rows if row[2] != shipped.ORDINARY]
    ordinary = [row[0] for row in rows if row[2] == shipped.ORDINARY]
    forms = disguises.forms([row[0] for row in listed])
    categories = [shipped.CATEGORIES.index(row[1]) for row in listed]
    path = Path(os.environ["ASSAY_SAMPLE"]) / f"{language}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"][:300] for line in lines][:: 1 if SOAK else 8]
    expected = [
        (number, entry, len(text[:begin].encode()), len(text[:end].encode()))
        for number, text in enumerate(texts)
        for entry, begin, end in definition.find(text, forms, categories, ordinary)
    ]
    batch = Texts(pa.array(texts))
    matches = find(batch, automaton(forms, categories, ordinary))
    starts = batch.offsets[matches.texts]
    found = zip(
        *(matches.texts, matches.entries, matches.begins - starts, matches.ends - starts),
        strict=True,
    )
    assert sorted(tuple(map(int, match)) for match in found) == sorted(expected)
    assert len(expected) > 100


@pytest.mark.parametrize("unit", ["色", "色\u200b", "色....", "色.", "make ", "a", "a\u200b", " "])
def test_linear_on_text_made_against_it(unit: str) -> None:
    built = plain(["色" * 60 + "x", "色" * 64, "make " * 12 + "x", "a" * 64, "a" * 63 + "色"])
    seconds = []
    for size in (20_000, 160_000):
        texts = Texts(pa.array([unit * size]))
        find(texts, built)
        start = time.process_time()
        find(texts, built)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 0.02 + 24 * seconds[0], "8 times the text"


def test_many_matches_grow() -> None:
    matches = find(Texts(pa.array(["色情," * 5000])), BUILT)
    assert len(matches.entries) == 5000
    assert np.all(matches.ends - matches.begins == 6)


def test_too_many_phrases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("filters.automaton._MAX_STATES", 10)
    with pytest.raises(ValueError, match="have 12 characters together, and 9 fit"):
        plain(["abcdef", "ghijkl"])
