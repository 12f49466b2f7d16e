from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.language import COLUMNS, codes, measure, model
from filters.segments import Texts

CODE = (
    "```python\n"
    + "def quick_sort(items, key=None):\n    return sorted(items, key=key)\n" * 30
    + "```\n"
)


def identified(text: str) -> dict[str, Any]:
    columns = measure(Texts(pa.array([text], pa.string())), {})
    assert list(columns) == list(COLUMNS)
    return {name: pa.array(column)[0].as_py() for name, column in columns.items()}


def test_codes_are_what_the_model_says_with_chinese_once() -> None:
    assert codes() == sorted(set(model().names.to_pylist()) - {"yue", "wuu"})
    assert len(codes()) == 175


@pytest.mark.parametrize(
    ("text", "lang", "variant"),
    [
        ("今天天气很好，我们去公园。", "zh", "Hans"),
        ("今天天氣很好，我們去公園。", "zh", "Hant"),
        ("佢哋喺度做緊嘢，冇時間食飯。", "zh", "yue"),
        ("The weather is fine today, so we walk.", "en", ""),
        ("a\nb c\nthe end of the line", "en", ""),  # predict takes one line at a time
        ("PROJECT TAGGING CRITERIA", "en", ""),  # fastText #1181: Korean
        ("東京都庁へ行きました。", "ja", ""),
        ("오늘은 날씨가 좋습니다.", "ko", ""),
        ("Сегодня хорошая погода, мы идём в парк.", "ru", ""),
        ("", "und", ""),  # fastText PR #876
        (" \n", "und", ""),
        ("123 。！😀", "und", ""),
    ],
)
def test_language_and_variant(text: str, lang: str, variant: str) -> None:
    row = identified(text)
    assert (row["lang"], row["lang_variant"]) == (lang, variant)
    assert row["lang_conflict"] is False
    assert (row["lang_score"] == 0.0) == (lang == "und")


@pytest.mark.parametrize("text", ["東京都庁", "漢字", "大阪市立図書館"])
def test_a_few_kanji_are_not_called_chinese_with_confidence(text: str) -> None:
    row = identified(text)  # language-detection #73
    assert row["lang"] == "und"
    assert row["lang_score"] <= 0.5


@pytest.mark.parametrize("text", ["欲窮千里目", "處處聞啼鳥", "你好世界", "兰亭集序"])
def test_a_few_han_that_japanese_does_not_have_are_chinese(text: str) -> None:
    assert identified(text)["lang"] == "zh"


KANJI = (
    "東京電力福島第一原子力発電所事故調査委員会最終報告書公表",
    "総務省統計局国勢調査結果概要公表資料一覧",
    "東京都渋谷区神宮前二丁目十二番地三号第一生命会館七階会議室",
    "日本放送協会受信料制度等検討委員会第三次答申概要",
    "大阪府立中央図書館国際児童文学館資料検索案内",
    "独立行政法人国立高等専門学校機構鶴岡工業高等専門学校図書館利用規則",
    "文部科学省初等中等教育局教育課程課学習指導要領改訂概要",
    "医薬品医療機器総合機構審査報告書承認申請資料",
    "東海道新幹線東京駅発新大阪駅行最終列車時刻表",
    "平成三十年度一般会計歳入歳出決算概要説明資料、労働基準法施行規則一部改正省令案新旧対照条文",
)


@pytest.mark.parametrize("text", [*KANJI, "\n".join(KANJI), "1. " + "\n2. ".join(KANJI[:2])])
def test_japanese_in_kanji_alone_is_japanese(text: str) -> None:
    row = identified(text)
    assert (row["lang"], row["lang_conflict"]) == ("ja", False)


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("臺灣總督府檔案管理局國家發展委員會資料公開", "Hant"),
        ("東京電力福島第一核電廠事故調查委員會最終報告書發表", "Hant"),
        ("东京电力福岛第一核电站事故调查委员会最终报告书发表", "Hans"),
        ("北京市朝阳区建国门外大街一号国贸大厦", "Hans"),
        ("大學中庸論語孟子詩經尚書禮記周易春秋左傳公羊傳", "Hant"),
        ("江雪千山鳥飛絕萬徑人蹤滅孤舟蓑笠翁獨釣寒江雪", "Hant"),
        ("学而时习之不亦说乎有朋自远方来不亦乐乎人不知而不愠", "Hans"),
        ("他在東京駅買了一張去新大阪駅的車票，說那裡的図書館很大。", "Hant"),  # forms cited
    ],
)
def test_chinese_without_modern_words_stays_chinese(text: str, variant: str) -> None:
    row = identified(text)
    assert (row["lang"], row["lang_variant"]) == ("zh", variant)


@pytest.mark.parametrize("charset", ["gb18030", "big5", "utf-8"])
def test_mojibake_is_no_language(charset: str) -> None:
    text = "今天天氣很好，我們去公園。"
    row = identified(text.encode(charset).decode("latin-1"))
    assert (row["lang"], row["lang_score"], row["lang_conflict"]) == ("und", 0.0, True)


@pytest.mark.parametrize(
    "text",
    [
        "Þetta er íslenska, og hún hefur mörg tákn með áherslum.",
        "Tôi muốn đọc những quyển sách này vào tối nay ở nhà của tôi.",
        "Où était l'élève ? À côté, là-bas, près de l'hôtel où il a été.",
    ],
)
def test_accents_of_a_language_are_no_mojibake(text: str) -> None:
    assert identified(text)["lang"] == {"Þ": "is", "T": "vi", "O": "fr"}[text[0]]


def test_han_without_kana_is_not_japanese() -> None:
    row = identified("白日依山盡黃河入海流欲窮千里目更上一層樓")  # by Wang Zhihuan, about 700
    assert (row["lang"], row["lang_variant"]) == ("zh", "Hant")


@pytest.mark.parametrize(
    "text",
    [
        f"# 快速排序\n\n[English](README.md) | [Issues](https://x.y/issues)\n\n{CODE}\n这里说明怎样使用它。",
        '.TH SORT 1 "2024" "sort 1.0" "User Commands"\n.SH 名称\nsort \\- 给行排序\n.SH 语法\n'
        ".B sort\n[\\fI选项\\fR]... [\\fI文件\\fR]...\n.SH 描述\n把各行排序后写到标准输出。\n",
        "'\\\" Copyright (c) 1993 The Regents of the University of California.\n.TH Tcl n 8\n"
        + '.de AS\n.nr )A 10n\n.ie !"\\\\$1"" .nr )A \\\\w\'\\\\$1\'u+3n\n..\n' * 30
        + ".SH 名称\nafter \\- 在一个时间延迟之后执行一个命令\n",
        "<div class='nav'><a href='/home'>首页</a></div><p>把文件的各行排序后写出。</p>" * 3,
    ],
)
def test_markup_and_code_do_not_hide_chinese(text: str) -> None:
    assert identified(text)["lang"] == "zh"


def test_conflict_is_settled_by_the_whole_document() -> None:
    head = "This page was translated by volunteers. Please see the notes about the licence. " * 30
    row = identified(head + "把文件的各行排序后写到标准输出，然后结束。" * 300)
    assert (row["lang"], row["lang_conflict"], row["lang_variant"]) == ("zh", True, "Hans")
    assert row["lang_score"] == pytest.approx(3 * row["han_share"] / (1 + 2 * row["han_share"]))
    row = identified("把文件的各行排序后写到标准输出，然后结束。" * 80 + head * 40)
    assert (row["lang"], row["lang_conflict"]) == ("en", True)


def test_shares_count_letters_of_the_whole_document() -> None:
    row = identified("中文ab 12。あ한й" + " " * 5000)
    assert [row[f"{name}_share"] for name in ("han", "kana", "hangul", "latin")] == [
        pytest.approx(share) for share in (2 / 7, 1 / 7, 1 / 7, 2 / 7)
    ]


@given(
    st.text(
        st.sampled_from("aB你好のー한й\n`[](<>.…😀 \u3000") | st.characters(codec="utf-8"),
        max_size=60,
    )
)
def test_every_text_has_a_row(text: str) -> None:
    row = identified(text)
    assert [name for name, value in row.items() if value is None] == []
    assert 0.0 <= row["lang_score"] <= 1.0
    assert row["lang_variant"] in ("", "Hans", "Hant", "yue", "wuu", "lzh")
    assert row["lang"] == "zh" or row["lang_variant"] == ""
    assert (
        0.0
        <= row["han_share"] + row["kana_share"] + row["hangul_share"] + row["latin_share"]
        <= 1.001
    )


SAMPLE = os.environ.get("ASSAY_SAMPLE")


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
@pytest.mark.parametrize(
    ("file", "source", "lang", "documents", "others"),
    [
        ("zh", "tldr-pages", "zh", 642, {}),
        ("zh", "hf-course", "zh", 41, {}),
        ("zh", "javaguide-zh", "zh", 39, {}),
        ("zh", "trpl-zh", "zh", 31, {"uk": 1}),  # a list of the languages of its translations
        ("zh", "laws-zh", "zh", 133, {"en": 11}),  # these hold "bookCollapseSection: true" only
        ("zh", "crosswoz-zh", "zh", 385, {}),
        ("zh", "poetry-yuding-quantangshi", "zh", 1305, {}),
        ("en", "tldr-pages", "en", 355, {}),
        ("en", "ethereum-eips-en", "en", 157, {}),
        ("en", "spamassassin-mail-en", "en", 202, {}),
        ("en", "nltk-movie-reviews", "en", 108, {}),
    ],
)
def test_sample_by_source(
    file: str, source: str, lang: str, documents: int, others: dict[str, int]
) -> None:
    with gzip.open(Path(str(SAMPLE)) / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [row["text"] for row in map(json.loads, lines) if row["source"] == source]
    found = Counter(pa.array(measure(Texts(pa.array(texts)), {})["lang"]).to_pylist())
    assert found == {lang: documents - sum(others.values()), **others}
