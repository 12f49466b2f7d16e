from __future__ import annotations

import zipfile
from datetime import date
from pathlib import Path

import pytest

from pipeline.readers import Bad, Record, epub
from pipeline.readers.formats import cut, read
from pipeline.settings import Input

CONTAINER = """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>"""
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"
 xmlns:dc="http://purl.org/dc/elements/1.1/">
<metadata><dc:title> 红楼
 梦 </dc:title><dc:creator>曹雪芹</dc:creator><dc:creator>高鹗</dc:creator>
<dc:identifier>urn:isbn:1</dc:identifier><dc:date>1791-01-02T00:00:00Z</dc:date>
<dc:rights>http://creativecommons.org/publicdomain/mark/1.0/</dc:rights></metadata>
<manifest>
<item id="b" href="text/two%20b.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="one.xhtml" media-type="application/xhtml+xml"/>
<item id="cover" href="cover.xhtml" media-type="application/xhtml+xml"/>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="picture" href="x.svg" media-type="image/svg+xml"/>
<item id="lost" href="lost.xhtml" media-type="application/xhtml+xml"/>
</manifest>
<spine><itemref idref="cover"/><itemref idref="nav"/><itemref idref="a"/><itemref idref="b"/>
<itemref idref="picture"/></spine></package>"""
PARTS = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "OEBPS/book.opf": PACKAGE,
    "OEBPS/cover.xhtml": "<html><body><img src='x.png'/></body></html>",
    "OEBPS/nav.xhtml": "<html><body><p>contents</p></body></html>",
    "OEBPS/one.xhtml": "<html><head><title/></head><body><a id='p1'/><p>第一回。</p></body></html>",
    "OEBPS/text/two b.xhtml": "<html><body><p>第二回。<br/>后文。</p></body></html>",
}


def book(tmp_path: Path, parts: dict[str, str], keep: tuple[str, ...] = ()) -> list[Record | Bad]:
    path = tmp_path / "a.epub"
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, text)
    return items(path, keep)


def items(path: Path, keep: tuple[str, ...] = ()) -> list[Record | Bad]:
    pieces = cut(str(path), path.name, 100)
    assert pieces is not None
    source = Input(source="t", files="*", keep=keep)
    return [item for piece in pieces for item in read(piece, source, "resiliparse")]


def test_chapters_in_the_order_of_the_spine(tmp_path: Path) -> None:
    found = book(tmp_path, PARTS, ("creator", "publisher"))
    rights = "http://creativecommons.org/publicdomain/mark/1.0/"
    assert found == [
        Record(
            0,
            (tmp_path / "a.epub").stat().st_size,
            "第一回。\n\n第二回。\n后文。",
            {
                "title": "红楼 梦",
                "source_id": "urn:isbn:1",
                "published_date": date(1791, 1, 2),
                "licence": "PDM-1.0",
                "licence_evidence": f"dc:rights: {rights}",
                "meta": {"creator": "曹雪芹, 高鹗"},
            },
        )
    ]


def test_a_chapter_that_is_not_there_costs_itself(tmp_path: Path) -> None:
    package = PACKAGE.replace('<itemref idref="b"/>', '<itemref idref="lost"/><itemref idref="x"/>')
    record, lost, nothing = book(tmp_path, {**PARTS, "OEBPS/book.opf": package})
    assert isinstance(record, Record)
    assert record.text == "第一回。"
    assert lost == Bad(3, 0, "bad_chapter", "OEBPS/lost.xhtml: not in the book")
    assert nothing == Bad(4, 0, "bad_chapter", "(no item 'x'): not in the book")


def test_a_page_stands_once_however_often_the_spine_names_it(tmp_path: Path) -> None:
    """As SiSU writes it: every section of a page is an item, `one.xhtml#s2`."""
    page = '<item id="s2" href="one.xhtml#s2" media-type="application/xhtml+xml"/></manifest>'
    package = PACKAGE.replace("</manifest>", page)
    package = package.replace("</spine>", '<itemref idref="s2"/></spine>')
    (record,) = book(tmp_path, {**PARTS, "OEBPS/book.opf": package})
    assert isinstance(record, Record)
    assert record.text == "第一回。\n\n第二回。\n后文。"


ENCRYPTION = """<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"
 xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:CipherData>
<enc:CipherReference URI="%s"/></enc:CipherData></enc:EncryptedData></encryption>"""


@pytest.mark.parametrize(
    ("changed", "reason", "detail"),
    [
        ({"META-INF/container.xml": "<a/>"}, "bad_epub", "names no package file"),
        ({"META-INF/container.xml": "<a"}, "bad_epub", "container.xml: not XML: unclosed token"),
        ({"OEBPS/book.opf": "<a/>"}, "no_main_text", "hold no text"),
        ({"META-INF/encryption.xml": ENCRYPTION % "OEBPS/one.xhtml"}, "encrypted", "(DRM)"),
    ],
)
def test_what_is_no_book(tmp_path: Path, changed: dict[str, str], reason: str, detail: str) -> None:
    (bad,) = book(tmp_path, PARTS | changed)
    assert isinstance(bad, Bad)
    assert (bad.offset, bad.reason) == (0, reason)
    assert detail in bad.detail


def test_encrypted_fonts_are_no_matter(tmp_path: Path) -> None:
    (record,) = book(tmp_path, PARTS | {"META-INF/encryption.xml": ENCRYPTION % "fonts/a.otf"})
    assert isinstance(record, Record)


def test_a_book_that_is_cut_off(tmp_path: Path) -> None:
    book(tmp_path, PARTS)
    path = tmp_path / "a.epub"
    path.write_bytes(path.read_bytes()[:-10])
    (bad,) = items(path)
    assert isinstance(bad, Bad)
    assert (bad.reason, bad.num_bytes) == ("bad_epub", path.stat().st_size)
    path.write_bytes(b"")
    assert items(path) == []


def test_a_chapter_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epub, "MAX_FILE_BYTES", len(PACKAGE.encode()))
    record, bad = book(tmp_path, {**PARTS, "OEBPS/text/two b.xhtml": "x" * 2000})
    assert isinstance(record, Record)
    assert isinstance(bad, Bad)
    assert (record.text, bad.offset, bad.reason) == ("第一回。", 3, "bad_chapter")
