from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pipeline.readers import Bad, Record
from pipeline.readers.formats import cut, read
from pipeline.settings import Input


def of(tmp_path: Path, name: str, data: bytes) -> list[Record | Bad]:
    path = tmp_path / name
    path.write_bytes(data)
    source = Input(source="t", files="*")
    pieces = cut(str(path), name, 100)
    assert pieces is not None
    return [item for piece in pieces for item in read(piece, source, "resiliparse")]


def test_hard_wrapped_chinese_keeps_its_line_ends(tmp_path: Path) -> None:
    text = "天气很好，我们\n一起去公园\r\n散步。\n"
    data = text.encode("gb18030") * 20
    assert of(tmp_path, "a.txt", data) == [Record(0, len(data), text * 20, {"charset": "gb18030"})]


def test_compressed_text(tmp_path: Path) -> None:
    packed = gzip.compress(b"# a\n")
    assert of(tmp_path, "a.txt.gz", packed) == [Record(0, 4, "# a\n", {"charset": "utf-8"})]
    (bad,) = of(tmp_path, "a.txt.gz", packed[:-3])
    assert isinstance(bad, Bad)
    assert (bad.offset, bad.num_bytes, bad.reason, bad.excerpt) == (0, 4, "truncated_gzip", "# a\n")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("text\n# 题 #\n## x\n", "题"),
        ('---\r\na: b\r\ntitle: "题"\r\n---\r\n# other\r\n', "题"),
        ("---\na: b\n---\ntitle: no key\n\n# Head\n", "Head"),
        ("---\na rule above\n", None),
        ("#no heading\n", None),
    ],
)
def test_markdown_stays_as_it_is_written(tmp_path: Path, text: str, title: str | None) -> None:
    data = text.encode()
    (found,) = of(tmp_path, "a.md", data)
    assert isinstance(found, Record)
    assert (found.text, found.fields.get("title")) == (text, title)


BOOK = "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。" * 40  # no line end in it
TRADITIONAL = "春眠不覺曉，處處聞啼鳥。夜來風雨聲，花落知多少。" * 40


@pytest.mark.parametrize(
    ("text", "codec", "charset"),
    [
        (BOOK, "gbk", "gb18030"),
        (BOOK + "㐀", "gb18030", "gb18030"),
        (TRADITIONAL, "big5", "big5hkscs"),
        (BOOK, "utf-16", "utf-16-le"),
        (BOOK, "utf-16-le", "utf-16-le"),
        (BOOK, "utf-16-be", "utf-16-be"),
        (BOOK, "utf-8-sig", "utf-8"),
    ],
)
def test_a_book_without_line_ends(tmp_path: Path, text: str, codec: str, charset: str) -> None:
    data = text.encode(codec)
    assert of(tmp_path, "a.txt", data) == [Record(0, len(data), text, {"charset": charset})]


@pytest.mark.parametrize("codec", ["gbk", "utf-8"])
def test_a_wrong_byte_of_a_book_costs_a_character(tmp_path: Path, codec: str) -> None:
    data = BOOK.encode(codec)
    middle = len(BOOK[:500].encode(codec))
    (found,) = of(tmp_path, "a.txt", data[:middle] + b"\xff" + data[middle:])
    assert isinstance(found, Record)
    assert found.text == BOOK[:500] + "\ufffd" + BOOK[500:]


def test_html(tmp_path: Path) -> None:
    data = '<meta charset="gbk"><title>标题</title><p>正文'.encode("gbk")
    assert of(tmp_path, "a.html", data) == [
        Record(0, len(data), "正文", {"charset": "gb18030", "title": "标题"})
    ]


@pytest.mark.parametrize("name", ["a.txt", "a.html"])
def test_nothing_and_no_text(tmp_path: Path, name: str) -> None:
    assert of(tmp_path, name, b"") == []
    (bad,) = of(tmp_path, name, b" \n")
    assert isinstance(bad, Bad)
    assert (bad.num_bytes, bad.reason) == (2, "no_main_text")
