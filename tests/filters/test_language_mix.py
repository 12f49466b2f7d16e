from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.blocks import blocks
from filters.language import measure as identify
from filters.language import model
from filters.language_mix import COLUMNS, MAX_LANGUAGES, languages, measure
from filters.segments import Texts

ZH = "今天天气很好，我们去公园。"
EN = "The weather is fine today, so we are going to the park."
FR = "La maison est grande et les enfants jouent dans le jardin avec leurs amis de Paris."
JA = "今日は天気がいいので公園へ行きます。"
KO = "오늘은 날씨가 좋아서 공원에 갑니다."
RU = "Сегодня хорошая погода, поэтому мы идём гулять в большой парк у реки."
CODE = "kubectl get pods --all-namespaces -o wide | grep -v Running | awk '{print $2}'"


def mixed(text: str, lang: str | None = None) -> dict[str, Any]:
    texts = Texts(pa.array([text], pa.string()))
    columns = measure(texts, {"lang": pa.array([lang]) if lang else found_lang(texts)})
    assert list(columns) == list(COLUMNS)
    return {name: pa.array(column)[0].as_py() for name, column in columns.items()}


def found_lang(texts: Texts) -> pa.Array:
    return pa.array(identify(texts, {})["lang"])


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([ZH], ["zh"]),
        ([ZH, EN], ["zh", "en"]),
        ([EN, FR, RU], ["en", "fr", "ru"]),
        ([JA, KO, ZH], ["ja", "ko", "zh"]),
        ([ZH, CODE], ["zh", "und"]),
        ([EN, CODE, "Usage"], ["en", "en", "en"]),  # as the document, where nothing tells
        ([ZH, "Usage", "2018"], ["zh", "und", "und"]),
        ([JA, "東京都庁"], ["ja", "ja"]),  # a title in Han alone
        ([ZH, "東京都庁"], ["zh", "zh"]),
        ([EN, "東京都庁"], ["en", "und"]),
        ([EN, "春眠不覺曉"], ["en", "zh"]),
        (["ＴＨＥ　ＷＥＡＴＨＥＲ", ZH], ["und", "zh"]),
        ([EN.upper(), FR.upper()], ["en", "fr"]),
        ([ZH.encode("gb18030").decode("latin-1") * 5], ["und"]),
    ],
)
def test_the_language_of_each_block(parts: list[str], expected: list[str]) -> None:
    texts = Texts(pa.array(["\n\n".join(parts)]))
    found = languages(texts, blocks(texts), found_lang(texts))
    assert model().names.take(pa.array(found)).to_pylist() == expected


def test_a_page_in_two_languages_line_by_line() -> None:
    row = mixed(f"{ZH}\n{EN}\n{ZH}\n{EN}")
    zh, en = 11, 42  # characters of words
    assert row["zh_share"] == row["hans_share"] == pytest.approx(zh / (zh + en))
    assert row["en_share"] == row["main_share"] == pytest.approx(en / (zh + en))
    assert (row["num_switches"], row["languages"]) == (3, ["en", "zh"])


def test_parts_say_where_each_language_stands() -> None:
    page = f"{ZH}\n\n{ZH}\n\n----\n\n{EN}\n{ZH}\r\n\r\n{CODE}\n\n😀\n"
    found = mixed(page)["parts"]
    assert [(part["lang"], part["num_blocks"]) for part in found] == [
        *(("zh", 2), ("en", 1), ("zh", 1), ("und", 1)),
    ]
    data = page.encode()
    texts = [data[part["start"] : part["end"]].decode() for part in found]
    assert texts == [f"{ZH}\n\n{ZH}", EN, ZH, CODE]
    batch = Texts(pa.array(["", ZH, "😀", f"\n{EN}"]))
    parts = measure(batch, {"lang": pa.array(["und", "zh", "und", "en"])})["parts"].to_pylist()
    assert parts == [
        [],
        [{"lang": "zh", "start": 0, "end": len(ZH.encode()), "num_blocks": 1}],
        [],
        [{"lang": "en", "start": 1, "end": 1 + len(EN), "num_blocks": 1}],
    ]


def test_what_is_of_no_known_language_is_no_switch() -> None:
    row = mixed(f"{ZH}\n\n{CODE}\n\n{ZH}")
    assert row["und_share"] > 0.5
    assert (row["num_switches"], row["languages"]) == (0, ["zh"])


def test_kinds_of_chinese() -> None:
    classical = (
        "學而時習之不亦說乎有朋自遠方來不亦樂乎人不知而不慍不亦君子乎其為人也孝弟而好犯上者鮮矣"
    )
    row = mixed(f"{ZH}\n\n{classical}\n\n佢哋喺度做緊嘢\n\n這個軟體發佈說明", "zh")
    total = 11 + len(classical) + 7 + 8
    shares = {"hans": 11, "lzh": len(classical), "yue": 7, "hant": 8}
    assert {name: row[f"{name}_share"] for name in shares} == {
        name: pytest.approx(count / total) for name, count in shares.items()
    }


def test_many_languages_are_at_most_eight() -> None:
    names = model().names.to_pylist()[:3]
    assert mixed("", names[0])["languages"] == []
    assert MAX_LANGUAGES == 8


@given(
    st.lists(st.sampled_from([ZH, EN, FR, JA, KO, RU, CODE, "\n", "\n\n", "12", "😀", "é"])),
    st.sampled_from(["zh", "en", "fr", "ja", "und", ""]),
)
def test_shares_sum_to_one(parts: list[str], lang: str) -> None:
    row = mixed("\n".join(parts), lang)
    total = sum(row[f"{name}_share"] for name in ("zh", "en", "ja", "ko", "other", "und"))
    assert total == pytest.approx(float(any(char.isalnum() for char in "".join(parts))))
    kinds = sum(row[f"{name}_share"] for name in ("hans", "hant", "yue", "lzh"))
    assert kinds <= row["zh_share"] + 1e-6
    assert 0.0 <= row["main_share"] <= 1.0
    ends = [part[side] for part in row["parts"] for side in ("start", "end")]
    assert ends == sorted(set(ends))
    langs = [part["lang"] for part in row["parts"]]
    assert all(a != b for a, b in pairwise(langs))


@pytest.mark.parametrize(
    "text", ["的" * 200_000, "a " * 200_000, "a\n的\n" * 50_000, "\n" * 200_000]
)
def test_large_texts_take_linear_time(text: str) -> None:
    mixed("a\n的", "zh")
    begin = time.process_time()
    mixed(text, "zh")
    assert time.process_time() - begin < 2.0
