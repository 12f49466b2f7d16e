from __future__ import annotations

import pytest

from pipeline.pages.charset import NOT_FOR_PAGES, BadCharset, _as_utf8, decode, meta_charset

ZH = "世界人权宣言：人人生而自由，在尊严和权利上一律平等。"
ZH += "他们赋有理性和良心，并应以兄弟关系的精神相对待。"
TW = "世界人權宣言：人人生而自由，在尊嚴和權利上一律平等。"
TW += "他們賦有理性和良心，並應以兄弟關係的精神相對待。"
JA = "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
KO = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. "
KO += "인간은 천부적으로 이성과 양심을 부여받았다."
RU = "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом."
FR = "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués."


@pytest.mark.parametrize(
    ("text", "encoding", "charset"),
    [
        (ZH, "utf-8", "utf-8"),
        (ZH, "gb2312", "gb18030"),
        (ZH + "㐀𠀀", "gb18030", "gb18030"),
        (ZH, "hz", "hz"),
        (TW, "big5", "big5hkscs"),
        (JA, "euc-jp", "euc_jp"),
        (JA, "shift_jis", "cp932"),
        (JA, "iso2022_jp", "iso2022_jp_2"),
        (KO, "euc-kr", "cp949"),
        (RU, "cp1251", "cp1251"),
        (RU, "koi8-r", "koi8-r"),
        (FR, "latin-1", "cp1252"),
        (FR, "utf-16", "utf-16-le"),
        (FR + "\n", "utf-16-be", "utf-16-be"),
        (ZH, "utf-16", "utf-16-le"),
        (ZH, "utf-8-sig", "utf-8"),
        ("plain", "ascii", "utf-8"),
        ("", "ascii", "utf-8"),
    ],
)
def test_pages_that_do_not_say(text: str, encoding: str, charset: str) -> None:
    assert decode(text.encode(encoding)) == (text, charset)


@pytest.mark.parametrize(
    ("text", "encoding", "declared", "charset"),
    [
        (ZH, "gbk", "gb2312", "gb18030"),
        ("é", "latin-1", "iso-8859-1", "cp1252"),
        ("号", "gbk", "GBK", "gb18030"),
        (ZH, "gbk", "utf-8", "gb18030"),  # the bytes contradict it
        (ZH, "utf-8", "gbk", "utf-8"),
        (FR * 3, "utf-8", "iso-8859-1", "utf-8"),  # the most common lie of all
        (ZH, "utf-8", "no-such-charset", "utf-8"),
        (JA, "shift_jis", "x-sjis", "cp932"),
    ],
)
def test_declared(text: str, encoding: str, declared: str, charset: str) -> None:
    assert decode(text.encode(encoding), declared) == (text, charset)


@pytest.mark.parametrize("declared", sorted(NOT_FOR_PAGES))
def test_codecs_that_are_no_encoding_of_pages(declared: str) -> None:
    assert decode(b"plain +2AA- \\ud800", declared) == ("plain +2AA- \\ud800", "utf-8")


def test_one_bad_byte_costs_one_character() -> None:
    data = ZH.encode("gbk")
    text, charset = decode(data[:20] + b"\xff" + data[20:], "gbk")
    assert (charset, text.count("\ufffd"), text.replace("\ufffd", "")) == ("gb18030", 1, ZH)


ENGLISH = "All human beings are born free and equal in dignity and rights. "


@pytest.mark.parametrize(("text", "declared"), [(ZH, None), (RU, None), (FR * 9, "iso-8859-1")])
@pytest.mark.parametrize("wrong", [b"\xe9", b"\xff", b"\xe4\xb8"])
def test_a_wrong_byte_in_utf8(text: str, declared: str | None, wrong: bytes) -> None:
    """Whatever stands around it, and whatever is declared."""
    data = (ENGLISH * 99).encode() + wrong + b" " + text.encode()
    assert decode(data, declared) == (ENGLISH * 99 + "\ufffd " + text, "utf-8")


def test_how_much_vouches_for_a_wrong_byte() -> None:
    assert decode("人人生而自 ".encode() + b"\xe9") == ("人人生而自 ", "utf-8")
    assert decode("人人生而自 ".encode() + b"\xe9.") == ("人人生而自 \ufffd.", "utf-8")
    assert decode("人人生而 ".encode() + b"\xe9.")[1] != "utf-8"
    assert decode(("é" * 10).encode() + b"\xe9.") == ("é" * 10 + "\ufffd.", "utf-8")


def test_faults_that_stand_in_utf8_are_no_faults_of_it() -> None:
    text = "\ufffd" * 9 + "plain"
    assert decode(text.encode()) == (text, "utf-8")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(ZH, "gbk"), (TW, "big5"), (JA, "euc-jp"), (JA, "shift_jis"), (KO, "euc-kr"), (RU, "koi8-r")],
)
def test_no_piece_of_another_encoding_passes_for_damaged_utf8(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    pieces = (data[a:b] for a in range(len(data)) for b in range(a + 20, len(data) + 1))
    assert [piece for piece in pieces if _as_utf8(piece) is not None] == []


def test_a_character_cut_at_the_end_is_left_out() -> None:
    assert decode(ZH.encode()[:-1]) == (ZH[:-1], "utf-8")


def test_binary_fits_nothing() -> None:
    with pytest.raises(BadCharset, match="198 bytes fit none of"):
        decode(b"\0\1" * 66 + b"\0" * 66)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (b'<meta charset="GBK">', "GBK"),
        (b"<meta http-equiv=Content-Type content='text/html; charset=big5'>", "big5"),
        (b'<?xml version="1.0" encoding="Shift_JIS"?>', "Shift_JIS"),
        (b"<p>charset=x", None),
    ],
)
def test_meta_charset(html: bytes, expected: str | None) -> None:
    assert meta_charset(html) == expected
