"""Advertising: what counts as a number, and that no kind of evidence is enough by itself."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.ad_numbers import (
    MIN_REPEATS,
    STUFFED_FROM,
    STUFFED_WORDS,
    count_numbers,
    stuffed_share,
)
from filters.ad_phrases import ENTRIES, KINDS
from filters.ads import FACTS, HALF, MIN_SIZE, PARTS, measure, saturated, score
from filters.segments import Texts
from filters.text import words

NUMBER = re.compile(r"[0-9](?:[0-9]|[.,](?=[0-9]))*")
GROUPS = re.compile(r"[0-9]+(?:[ ().-]{1,2}[0-9]+){0,4}")


def numbers_by_definition(text: str) -> list[int]:
    counts = [0, 0, 0]
    at = 0
    while found := NUMBER.search(text, at):
        start, at = found.span()
        before, after = text[:start], text[at:]
        if re.search(r"[A-Za-z_.]\Z", before) or re.match(r"[A-Za-z_]", after):
            continue
        if re.match(" ?折", after):
            counts[2] += 1
        elif re.match(" ?[元块]", after) or re.search(r"[$£¥€￥] ?\Z", before):
            counts[1] += 1
        elif end := phone_by_definition(text, start):
            counts[0] += 1
            at = end
    return counts


def phone_by_definition(text: str, start: int) -> int:
    found = GROUPS.match(text, start)
    assert found is not None
    groups = re.findall("[0-9]+", found[0])
    digits = "".join(groups)
    separators = re.findall("[^0-9]+", found[0])
    if len(digits) > 13 or re.match(r"[A-Za-z_]", text[found.end() :]):
        return 0
    sizes = [len(group) for group in groups]
    is_phone = (
        (sizes == [3, 4] and separators[0][0] == "-")
        or sizes == [3, 3, 4]
        or (sizes == [1, 3, 3, 4] and digits[0] == "1")
        or (len(digits) == 11 and len(groups) <= 3 and re.match("1[3-9]", digits))
        or (10 <= len(digits) <= 12 and len(groups) <= 4 and re.match("0[1-9]", digits))
        or (len(digits) == 10 and re.match("[48]00", digits))
    )
    return found.end() if is_phone else 0


def numbers(text: str) -> list[int]:
    texts = Texts(pa.array([text], pa.string()))
    found: list[int] = count_numbers(texts.data, texts.offsets)[0].tolist()
    return found


@pytest.mark.parametrize(
    "text",
    [
        *("138 0000 1234", "13800001234", "0571-0000 8888", "02-0000-1688", "400-000-0018"),
        *("(312) 555-0119", "1-800-555-0134", "555-0177", "0113 496 0000", "电话01000000000。"),
    ],
)
def test_a_telephone_number(text: str) -> None:
    assert numbers(text) == numbers_by_definition(text) == [1, 0, 0]


@pytest.mark.parametrize(
    "text",
    [
        *("2019-05-06 10:20", "0000000069", "978-7-302-12345-6", "3.1415926535", "a13800001234"),
        *("1234567890", "13800001234b", "12345678901234567890", "192.168.0.1", "第1380000号"),
    ],
)
def test_no_telephone_number(text: str) -> None:
    assert numbers(text) == numbers_by_definition(text) == [0, 0, 0]


def test_prices_and_discounts() -> None:
    text = "原价1,280元，现价￥ 99.9，打8.5折，运费 10 块，$5, £6, €7, ¥8, 9美元, 3000"
    assert numbers(text) == numbers_by_definition(text) == [0, 7, 1]


@given(
    st.lists(
        st.sampled_from(
            [
                *("138", "0000", "1234", "555", "400", "010", " 折", "元", "$", "￥", "£", "€ "),
                *"0123456789-(). ,a_电é\n",
            ]
        ),
        max_size=30,
    ).map("".join)
)
def test_numbers_are_the_definition(text: str) -> None:
    assert numbers(text) == numbers_by_definition(text)


def stuffed(text: str) -> float:
    found = Texts(pa.array([text], pa.string()))
    return float(stuffed_share(found.segments.words)[0])


def stuffed_by_definition(text: str) -> float:
    found = words(text.lower())[:STUFFED_WORDS]
    pairs = Counter((one, other) for one, other in itertools.pairwise(found) if one != other)
    most = max(pairs.values(), default=0)
    share = min(2 * most / len(found), 1.0) if found else 0.0
    return share if most >= MIN_REPEATS and share > STUFFED_FROM else 0.0


@given(
    st.lists(st.sampled_from([*"ab 开锁，北京", "A b ", "cheap flights "]), max_size=80).map(
        "".join
    )
)
def test_stuffed_share_is_the_definition(text: str) -> None:
    assert stuffed(text) == stuffed_by_definition(text)


def test_stuffed_share_of_long_texts() -> None:
    assert stuffed("开锁，" * 50_000) == 1.0
    assert stuffed("哈" * 50_000) == 0.0
    varied = "".join(chr(0x4E00 + i) for i in range(STUFFED_WORDS)) + "开锁" * 5_000
    assert stuffed(varied) == stuffed_by_definition(varied) == 0.0


def columns(text: str) -> dict[str, float]:
    found = measure(Texts(pa.array([text], pa.string())), {})
    return {name: float(np.asarray(found[name])[0]) for name in (*PARTS, "score")}


@pytest.mark.parametrize("kind", HALF)
def test_one_kind_alone_is_no_advertisement(kind: str) -> None:
    phrases = [phrase for of, _, phrase in ENTRIES if of == kind][:8]
    found = columns("\n".join(phrases))
    assert found[kind] > 0.7
    assert [part for part in HALF if found[part] > 0] == [kind]
    alone = {part: np.array([found[part] if part == kind else 0.0]) for part in PARTS}
    assert score(alone).tolist() == [0]


def test_a_timetable_with_prices_and_telephone_numbers_is_none() -> None:
    found = columns("票价20元，电话010-00000000。\n" * 30)
    assert found["contact"] > 0.5
    assert found["price"] > 0.5
    assert found["stuffing"] > 0.4  # of equal lines
    assert columns("票价20元，电话010-00000000。")["score"] == 0


@pytest.mark.parametrize(
    "text",
    [
        "The museum is open free of charge, places are limited, book ahead.",
        "请问学费多少，有优惠活动吗？可以免费试听吗？",
        "讲座名额有限，请提前预约。",
    ],
)
def test_two_phrases_are_a_notice_or_a_question(text: str) -> None:
    assert columns(text)["score"] < 0.2


def test_the_formula() -> None:
    size = np.array([200.0])
    assert saturated(np.array([1.0]), size, 5.0).tolist() == [0.5]  # 5 per 1,000
    assert saturated(np.array([1.0]), np.array([1.0]), 1000 / MIN_SIZE).tolist() == [0.5]
    nothing = {part: np.zeros(1) for part in PARTS}
    half = np.array([0.5])
    assert score(nothing | {"call": half, "offer": half}).tolist() == [0.25]
    assert score(nothing | {"call": half, "price": half}).tolist() == pytest.approx([0.15])
    assert score(nothing | dict.fromkeys(FACTS, half)).tolist() == [0]
    all_three = nothing | {"call": half, "offer": half, "trade": half}
    assert score(all_three).tolist() == [1 - 0.75**3]


def test_disguises_are_seen_through() -> None:
    plain = columns("加微信，名额有限")
    for text in (
        "加薇信，名额有限",
        "加微❤信，名額有限",
        "加 微 信，名.额.有.限",
        "加微信，名额有限",
    ):
        assert columns(text)["score"] == pytest.approx(plain["score"], abs=0.02)


def test_evidence_names_kind_and_words() -> None:
    texts = Texts(pa.array(["有意者加微信，名额有限，先到先得", "名额有限", ""]))
    found = measure(texts, {})
    assert found["evidence"].to_pylist() == [
        ["contact: 有意者", "contact: 加微信", "call: 名额有限", "call: 先到先得"],
        [],
        [],
    ]


def test_evidence_has_numbers_and_stuffed_words_too() -> None:
    texts = Texts(
        pa.array(["不过 $1,280，或99.9 元，打 8.5折，包邮，立即预约010-00000000。" + "开锁，" * 9])
    )
    assert measure(texts, {})["evidence"].to_pylist() == [
        [
            *("price: $1,280", "offer: 8.5折", "contact: 010-00000000", "stuffing: 开锁"),
            *("offer: 包邮", "call: 立即预约", "trade: 开锁"),
        ]
    ]


def test_every_entry_is_of_a_kind_once() -> None:
    assert {kind for kind, _, _ in ENTRIES} == set(KINDS)
    assert {weight for _, weight, _ in ENTRIES} == {0.5, 1.0}
    assert [p for p, n in Counter(phrase for _, _, phrase in ENTRIES).items() if n > 1] == []
    assert [phrase for _, _, phrase in ENTRIES if phrase != phrase.strip().lower()] == []
