"""Scores of unsafe text by category: the formula by hand, combination, evidence, the list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from filters import unsafe
from filters.segments import Texts
from filters.shipped import UNSAFE
from filters.unsafe import CATEGORIES, COLUMNS, measure

FILLER = "今天天气很好。" * 50  # 300 words


def scores(text: str) -> dict[str, Any]:
    row = pa.table({k: pa.array(v) for k, v in measure(Texts(pa.array([text])), {}).items()})
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in row.to_pylist()[0].items()}


def test_one_hit_in_a_short_text() -> None:  # 1,000 x 1 / 50 = 20; 20 / 28 x .75
    found = scores("他们裸聊")
    assert found["pornography"] == found["score"] == 0.536
    assert found["words"] == ["pornography:裸聊"]


def test_two_entries_in_a_long_one() -> None:  # 1,000 x 3 / 306 = 9.8; 9.8 / 17.8
    found = scores(FILLER + "裸聊约炮裸聊")
    assert found["pornography"] == 0.551
    assert found["words"] == ["pornography:裸聊", "pornography:约炮"]


def test_one_entry_many_times() -> None:  # saturates at SINGLE
    assert scores("online casino " * 500)["gambling"] == 0.738


def test_what_clean_text_has_too_counts_only_beside_another() -> None:
    strengths = dict(zip(unsafe.entries().names, unsafe.entries().alone, strict=True))
    assert not strengths["gambling:赌博"]
    assert strengths["gambling:百家乐"]
    assert scores("聚众赌博的，处三年以下有期徒刑。")["score"] == 0
    assert scores("赌博，玩百家乐")["words"] == ["gambling:百家乐", "gambling:赌博"]
    assert scores("赌博" + FILLER + "百家乐")["words"] == ["gambling:百家乐"]
    assert scores("百家乐" + FILLER + "赌博")["words"] == ["gambling:百家乐"]
    assert scores("赌博，约炮")["words"] == ["pornography:约炮"], "of the same category"


def test_beside_another_in_another_text_is_not_beside() -> None:
    columns = measure(Texts(pa.array(["百家乐", "赌博", "百家乐"])), {})
    assert [round(float(score), 3) for score in columns["gambling"]] == [0.536, 0, 0.536]


@pytest.mark.parametrize(
    "text", ["十字路口交通", "做爱国者", "印度支那半岛", "性，交通", "垃圾回收器"]
)
def test_words_that_hold_a_listed_one(text: str) -> None:
    assert scores(text)["score"] == 0


@pytest.mark.parametrize(
    "text", ["裸❤聊", "裸 聊", "裸\u200b聊", "裸★★聊", "ＰＯＲＮＨＵＢ", "pórnhub"]
)
def test_disguises(text: str) -> None:
    assert scores(text)["score"] == 0.536


@pytest.mark.parametrize(
    "text", ["", "a", "的", "。，！", "色" * 200_000, "x " * 500_000, "\r\n", "裸聊\r\n" * 9]
)
def test_a_score_of_every_text(text: str) -> None:
    columns = measure(Texts(pa.array([text])), {})
    for category in (*CATEGORIES, "score"):
        assert columns[category].dtype == np.float32
        assert 0 <= columns[category][0] <= 1
    assert list(columns) == list(COLUMNS)


def test_at_most_eight_words() -> None:
    text = "，".join(name.split(":")[1] for name in unsafe.entries().names[:40])
    assert len(list(scores(text)["words"])) == 8


def test_the_list() -> None:
    rows = [line.split("\t") for line in UNSAFE.read_text(encoding="utf-8").splitlines()]
    assert {len(row) for row in rows} == {4}
    assert {row[1] for row in rows} == {*CATEGORIES, "-"}
    assert {row[2] for row in rows} == {"alone", "together", "ordinary"}
    assert {row[3] for row in rows} == {"own", "LDNOOBW en", "LDNOOBW zh", "jionlp"}
    assert len({row[0] for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("text", "num_bad_words", "num_pornography"),
    [
        ("a cock crew", 1, 0),  # of LDNOOBW, and counts as pornography only beside another
        ("hot anal sex", 1, 1),  # an entry of our own that holds a word of LDNOOBW
        ("onlyfans", 0, 1),  # our own
        ("婊子", 1, 0),
        ("十字路口交通，做爱国者", 0, 0),
        ("", 0, 0),
    ],
)
def test_counts_for_published_rules(text: str, num_bad_words: int, num_pornography: int) -> None:
    found = scores(text)
    assert (found["num_bad_words"], found["num_pornography"]) == (num_bad_words, num_pornography)
