from __future__ import annotations

import pyarrow as pa
import pytest

from filters import letters
from filters.letters import Letters, count
from kernels.arrow import string_buffers


def counted(*texts: str) -> Letters:
    return count(*string_buffers(pa.array(texts, pa.string())))


def test_letters_are_counted_by_script() -> None:
    n = counted("中文ab 12。あ한й", "ＡｂABｱ，！", "")
    assert [c.tolist() for c in (n.all, n.han, n.kana, n.hangul, n.latin)] == [
        [7, 5, 0], [2, 0, 0], [1, 1, 0], [1, 0, 0], [2, 4, 0],
    ]  # fmt: skip
    assert n.upper.tolist() == [0, 3, 0]
    assert n.odd_width.tolist() == [0, 3, 0]
    assert n.accented.tolist() == [0, 0, 0]
    assert [c.tolist() for c in n.of(n.kana > 0)[:2]] == [[7, 5], [2, 0]]


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("这个软件发布说明", "Hans"),
        ("這個軟體發佈說明", "Hant"),
        ("佢哋喺度做緊嘢", "yue"),
        ("伊搿能覅去", "wuu"),
        (
            "學而時習之不亦說乎有朋自遠方來不亦樂乎人不知而不慍不亦君子乎其為人也孝弟而好犯上者鮮矣",
            "lzh",
        ),
        ("山水", ""),
        ("", ""),
    ],
)
def test_variant(text: str, variant: str) -> None:
    assert letters.VARIANTS[letters.variant(counted(text))[0]] == variant


def test_what_shows_that_han_are_chinese() -> None:
    n = counted("東京都庁", "國會", "説明", "說明", "这", "图書館", "与", "㐀")
    assert n.chinese.tolist() == [0, 2, 0, 1, 1, 1, 0, 1]
    assert n.japanese.tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_what_shows_that_han_are_japanese() -> None:
    texts = {
        "発総図駅検働込畑": True,  # no kind of Chinese writes them
        "学習指導要領": True,  # 学 is simplified, 習導領 are not
        "大學圖書館": False,
        "学习指导": False,
        "丸之内": False,
        "在図書館里看书，说这里很好": False,  # one of Japanese, but more of Chinese
        "": False,
    }
    found = letters.is_like_kanji(counted(*texts))
    assert dict(zip(texts, found.tolist(), strict=True)) == texts


def test_mojibake() -> None:
    texts = [
        "今天天气很好".encode("gb18030").decode("latin-1"),
        "Ñandú, año, niñez",
        "à",
        "ÀÉÎÕ abc",
    ]
    n = counted(*texts)
    assert n.accented.tolist() == [9, 4, 1, 4]
    assert letters.is_mojibake(n).tolist() == [True, False, False, True]


def test_what_scripts_tell() -> None:
    n = counted("今天天气很好", "東京都庁へ行きました", "오늘은 날씨가 좋습니다", "漢字", "so")
    assert letters.is_japanese(n).tolist() == [False, True, False, False, False]
    assert letters.is_korean(n).tolist() == [False, False, True, False, False]
    assert letters.is_undecided(n).tolist() == [False, False, False, True, False]
    assert letters.ideographic_weight(counted("中a", "中abc", "")).tolist() == [0.75, 0.5, 0.0]


def test_what_is_plainly_chinese() -> None:
    """Modern Chinese prose; not classical, not Japanese without kana, not GBK read as Big5."""
    texts = {
        "今天天气很好，我们去公园散步，他说这是最好的季节。": True,
        "我們這個禮拜去了很多地方，沒有人說不好。": True,
        "床前明月光，疑是地上霜。举头望明月，低头思故乡。": False,
        "東京都千代田区永田町一丁目七番一号国会議事堂": False,
        "這是我们的テスト、とても便利です。": False,
        "We met 他们 there, and they told us of the river and of the mill.": False,
        "鐨勪竴浜涗汉鍦ㄨ繖閲屽伐浣滐紝浠栦滑璇": False,
        "的的": False,
        "": False,
    }
    array = pa.array(list(texts))
    found = letters.is_plainly_chinese(letters.count(*string_buffers(array)))
    assert dict(zip(texts, found.tolist(), strict=True)) == texts
