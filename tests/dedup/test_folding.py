"""The folded view: what it keeps, what it cannot see."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup import folding
from dedup.folding import fold, fold_point

# Characters that meet every branch of the loop, between whatever hypothesis finds.
CHARS = st.one_of(
    st.sampled_from("aZß1９ .,\r\n中國文カｶﾞがé\u0301ﷺ㌖½①\u00ad\u200b\u200d\ufeff👍𠀀İſ한"),
    st.characters(codec="utf-8"),
)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("", ""),
        ("Hello,  WORLD!\r\n", "hello world"),
        ("用Python写", "用 python 写"),
        ("漢語", "汉 语"),
        ("ＡＢＣ１２３", "abc123"),
        ("ﾊﾟﾝ", "ハ ン"),
        ("Straße, CAFÉ, cafe\u0301", "strasse cafe cafe"),
        ("İstanbul", "istanbul"),
        ("co\u00adop a\u200bb \ufeffc", "coop a b c"),
        ("don't 3.5", "don t 3 5"),
        ("👍🏽", ""),
        ("한국어 텍스트", unicodedata.normalize("NFKD", "한국어 텍스트")),
        ("हिन्दी", "हिनदी"[0:3] + "दी"),
        ("㌖", "キ ロ メ ー ト ル"),
        ("1️⃣", "1"),
        ("二〇二六", "二 〇 二 六"),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_fold_point_is_all_there_is_to_it() -> None:
    assert [fold_point(c) for c in "A漢ﷺ、\u0301"] == ["a", "汉", "صلى الله عليه وسلم", " ", ""]


@given(st.text(CHARS, max_size=60))
def test_canonically_equal_texts_have_one_folded_view(text: str) -> None:
    nfd, nfc = (unicodedata.normalize(form, text) for form in ("NFD", "NFC"))
    assert fold(nfd) == fold(nfc) == fold(text)


def test_the_short_way_to_a_letter_is_the_long_one() -> None:
    letters = [c for c in map(chr, range(0x32000)) if unicodedata.category(c) == "Lo"]
    assert [c for c in letters if folding._is_folded(c) and fold_point(c) != c] == []
