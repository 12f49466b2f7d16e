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


@pytest.mark.parametrize("name", ["a.txt.gz", "a.md.gz"])
def test_compressed_text(tmp_path: Path, name: str) -> None:
    packed = gzip.compress(b"# a\n")
    assert of(tmp_path, name, packed) == [Record(0, 4, "# a\n", {"charset": "utf-8"})]
    (bad,) = of(tmp_path, name, packed[:-3])
    assert isinstance(bad, Bad)
    assert (bad.offset, bad.num_bytes, bad.reason, bad.excerpt) == (0, 4, "truncated_gzip", "# a\n")


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
