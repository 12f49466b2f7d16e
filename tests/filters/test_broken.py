from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.broken import COLUMNS, DEAR, measure
from filters.broken_words import CONFUSED_WORDS, ENDINGS, JOINED_CHARS
from filters.evidence import MOST
from filters.segments import Texts
from filters.text import lines, words


def row(text: str, lang: str = "zh") -> dict[str, float | int | list[str]]:
    columns = measure(Texts(pa.array([text], pa.string())), {"lang": pa.array([lang])})
    assert list(columns) == list(COLUMNS)
    return {name: pa.array(column).to_pylist()[0] for name, column in columns.items()}


SOUND = [
    ("周末来图书馆的人很多，他自己经常坐在窗边。第一章 总则", "zh"),
    ("参数(int)与函数(main)不同；2×10 米，3×1000 个。", "zh"),
    ("子曰：「學而時習之，不亦說乎？」", "zh"),
    ("It is an over-\n\nall view; the int (main) of a, b, c and d.", "en"),
    ("internationalization of https://averyveryverylongdomainname.example.com", "en"),
    ("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "en"),
    ("def f(x):\n        return x  # the end", "en"),
]


@pytest.mark.parametrize(("text", "lang"), SOUND)
def test_sound_text(text: str, lang: str) -> None:
    assert {n: v for n, v in row(text, lang).items() if v and n != "wrapped_line_share"} == {}


@pytest.mark.parametrize(
    ("signal", "text", "lang", "value", "evidence"),
    [
        ("num_replaced", "一\ufffd二", "zh", 1, "wrong_char: \ufffd"),
        ("pinyin_share", "训(xùn)练（liàn）", "zh", 0.5, "pinyin: (xùn)"),
        ("pinyin_share", "训(xun)练(lian)很（hen）难", "zh", 3 / 7, "pinyin: (xun)"),
        ("pinyin_share", "训练(xunlian)学习(xuexi)复习(fu xi)", "zh", 3 / 10, "pinyin: (xunlian)"),
        ("spaced_share", "你 好 吗 我 好", "zh", 0.6, "spaced: 好"),
        ("spaced_share", "a word: p r i n t e d", "en", 7 / 9, "spaced: p r i n t e d"),
        (
            "split_share",
            "the na tion and the sta tion of the educa tion",
            "en",
            3 / 11,
            "split: tion",
        ),
        ("confused_share", "tlie end of tlie line, frorn here", "en", 3 / 7, "confused: tlie"),
        ("confused_share", "末来的曰本，末经许可", "zh", 3 / 9, "confused: 末来"),
        ("hyphen_line_share", "infor-\nmation", "en", 0.5, "hyphen_line: infor-"),
        ("num_flat_powers", "约 3×1025 次，×10-6", "zh", 2, None),
    ],
)
def test_each_kind(signal: str, text: str, lang: str, value: float, evidence: str | None) -> None:
    found = row(text, lang)
    assert found[signal] == pytest.approx(value)
    places = found["evidence"]
    assert isinstance(places, list)
    assert places[:1] == ([] if evidence is None else [evidence])
    assert found["score"] == (0 if evidence is None else 1)


def test_joined_words() -> None:
    text = "thisisasentencewithoutspaces andanotheronewithoutanyspaces sothatthereareenoughofthem"
    found = row(text, "en")
    assert found["joined_share"] == pytest.approx((len(text) - 2) / len(text))
    assert row(text, "de")["joined_share"] == 0
    assert row(text.split()[0], "en")["joined_share"] == 0


def test_page_numbers_and_heads() -> None:
    page = "A line of text.\n" * 9
    text = "".join(f"{page}{head}\nThe Annual Report\n" for head in ("- 1 -", "- 2 -", "- 3 -"))
    assert row(text, "en")["page_line_share"] == pytest.approx((2 * 3) / 33)
    pages = "".join(f"{page}第 {number} 页\n" for number in (7, 8, 9))
    assert row(pages)["page_line_share"] == pytest.approx(5 / 30)  # and lines beside
    assert row(pages.replace("8", "9"))["page_line_share"] == 0


def test_lines_within_sentences() -> None:
    cut = "这是一个被换行切断的很长的句子\n它在下一行继续。\n新的一行。"
    assert row(cut)["wrapped_line_share"] == pytest.approx(1 / 3)
    assert row("A sentence that goes\non here, and\n\nends.", "en")[
        "wrapped_line_share"
    ] == pytest.approx(1 / 3)


@pytest.mark.parametrize("char", ["的", "\ufffd", "a", "-", " ", "鐨", "（", "×", "1"])
def test_200_000_equal_characters(char: str) -> None:
    found = row(char * 200_000, "en")
    assert found["score"] == (1 if char == "\ufffd" else 0)
    places = found["evidence"]
    assert isinstance(places, list)
    assert len(places) <= MOST


LONG = "thisisoneofthewordsthathavenospaces"
PIECES = [
    *("tion", "Ment", "tlie", "frorn", "tional", "末来", "曰本", "自己经", "训(xùn)", "练（liàn）"),
    *("练(lian)", "难（nan）", "学(xue)", "机(machine)", "(hen)"),
    *(LONG, LONG[: JOINED_CHARS - 1], "A" + LONG, LONG[:JOINED_CHARS] + "'", "x" * 19, "3"),
    *("×1025", "× 10-6", "×102.5", " ", " ", "\n", ".", "-", "“", "'", "é", "的", "a", "word"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_the_first_looks_miss_nothing(text: str) -> None:
    found = row(text, "en")
    sizes = dict.fromkeys(("pinyin_share", "split_share", "confused_share"), len(words(text)))
    sizes["joined_share"] = sum(map(len, lines(text)))
    shares = {n: min(DEAR[n](text)[0] / max(size, 1), 1.0) for n, size in sizes.items()}
    assert {n: found[n] for n in sizes} == {n: np.float32(share) for n, share in shares.items()}
    assert found["num_flat_powers"] == DEAR["num_flat_powers"](text)[0]


@given(st.text("ab1 \n.你好", max_size=60))
def test_letters_between_spaces(text: str) -> None:
    plain = re.findall("(?<![A-Za-z0-9])(?:[A-Za-z] ){3,}[A-Za-z](?![A-Za-z0-9])", text)
    han = re.findall(" (?<=[好你] )[好你](?= [好你])", text)
    spaced = len(han) + sum((len(match) + 1) // 2 for match in plain)
    expected = (spaced, han + plain) if spaced >= 3 else (0, [])
    assert DEAR["spaced_share"](text) == expected


def test_few_of_a_kind_are_none() -> None:
    assert len(ENDINGS & CONFUSED_WORDS) == 0
    assert row("the na tion and the sta tion", "en")["split_share"] == 0
    assert row("作者 王 小明，在这里写下今天的天气。", "zh")["spaced_share"] == 0
    assert row("这是一个普通 的 句子，里面多了两个空格", "zh")["score"] == 0
    assert row("tlie end of tlie line", "en")["confused_share"] == 0
