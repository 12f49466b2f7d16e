"""Scores of unsafe text by category: the formula by hand, combination, evidence, the list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from filters import unsafe
from filters.segments import Texts
from filters.shipped import STRENGTHS, UNSAFE
from filters.unsafe import CATEGORIES, COLUMNS, measure

FILLER = "今天天气很好。" * 50  # 300 words


def scores(text: str) -> dict[str, Any]:
    row = pa.table({k: pa.array(v) for k, v in measure(Texts(pa.array([text])), {}).items()})
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in row.to_pylist()[0].items()}


def test_one_severe_hit_in_a_short_text() -> None:  # 1,000 x 1 / 50 = 20; 20 / 28 x .75
    found = scores("他们裸聊")
    assert found["pornography"] == found["score"] == 0.536
    assert found["words"] == ["pornography:裸聊"]


def test_one_hit_that_is_not_severe_stays_below_the_bound() -> None:  # 20 / 28 x .55
    assert scores("I dropped my keys, fuck")["hate"] == 0.393
    assert scores("fuck, fuck, fuck")["hate"] == 0.485
    assert scores("fuck, bullshit")["hate"] == 0.833  # of two entries


def test_two_entries_in_a_long_one() -> None:  # 1,000 x 3 / 306 = 9.8; 9.8 / 17.8
    found = scores(FILLER + "裸聊约炮裸聊")
    assert found["pornography"] == 0.551
    assert found["words"] == ["pornography:裸聊", "pornography:约炮"]


def test_one_entry_many_times() -> None:  # saturates at SINGLE_SEVERE
    assert scores("online casino " * 500)["gambling"] == 0.738


def test_what_clean_text_has_too_counts_only_beside_another() -> None:
    together = dict(zip(unsafe.entries().names, unsafe.entries().together, strict=True))
    assert together["gambling:赌博"]
    assert not together["gambling:百家乐"]
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


EVERYDAY = (
    "The rent is 300 USD per week, and the landline is included in it.",
    "Click here to start your free trial, or unsubscribe at any time.",
    "Free entry on Sundays. Work from home on Fridays; exercise helps to lose weight.",
    "She was awarded the prize of the academy, and the winner thanked his next of kin.",
    "The risk free rate and the high returns of the fund: a Ponzi scheme fell in 2008.",
    "Women's 25 m sports pistol: ammunition is issued on the range. The snatch, and skeet.",
    "He is gay, and his brother came to the wedding. Serve the soup with crackers.",
    "The cock crows; great tits nest in the box, and a Maine coon sleeps on its butt.",
    "The vagina of the female and the penis of the male; the anus and the rectum; intercourse.",
    "The fingering of this passage is hard for small hands. Hardcore punk, tainted love.",
    "We pretrain with MLM, the masked language model objective; features are pegging at zero.",
    "The massacre of 1572 and the genocide of 1915; the eunuch of the court, torture, Lynch.",
    "Use a hoe to loosen the soil. Rape is sown in autumn, and there was a chink in the door.",
    "公司开发票需要提供税号。欢迎关注我们的微信号，进群领奖。",
    "转账的手续费为零，请输入验证码；汇款后积分兑换，特价机票。",
    "男子10米气步枪和手枪决赛今天举行，子弹由组委会发放，杀手锏是必中点球。",
    "太极拳师傅每天早上在公园里打拳，球队稳赢，教练下注新人。",
    "猫交配的季节一般在春天；卵子和杂种水稻；乳头、阴囊、包皮的护理。",
    "这首钢琴曲的高潮充满激情，赤裸的双脚踩在露点以下的地面。",
    "日本鬼子进村的时候，汉奸逃走了；南京大屠杀，斩首，酷刑，活埋。",
    "祝你全家幸福！把沙发靠背放低，老二上小学，他妈做饭，肥西县的刚度试验。",
    "警方提醒：电信诈骗、刷单骗局、杀猪盘、钓鱼网站，勿给骗子转账。",
)


@pytest.mark.parametrize("text", EVERYDAY)
def test_everyday_words(text: str) -> None:
    assert scores(text)["score"] < 0.5


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
    assert {row[2] for row in rows} == set(STRENGTHS)
    assert {row[3] for row in rows} == {"own", "LDNOOBW en", "LDNOOBW zh", "jionlp"}
    assert len({row[0] for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("text", "num_bad_words", "num_pornography"),
    [
        ("a cock crew", 1, 0),  # of LDNOOBW, and counts as pornography only beside another
        ("hot anal sex", 1, 1),  # an entry of our own that holds a word of LDNOOBW
        ("onlyfans", 0, 1),  # our own
        ("婊子", 1, 0),
        ("祝你全家幸福，乳腺癌", 1, 0),  # the list has 你全家 as it is
        ("十字路口交通，做爱国者", 0, 0),
        ("", 0, 0),
    ],
)
def test_counts_for_published_rules(text: str, num_bad_words: int, num_pornography: int) -> None:
    found = scores(text)
    assert (found["num_bad_words"], found["num_pornography"]) == (num_bad_words, num_pornography)
