"""The real sample corpus, reached by the variable ASSAY_SAMPLE: every record comes out."""

from __future__ import annotations

import codecs
import os
from collections import Counter
from pathlib import Path

import pytest

from pipeline.readers import Bad, Piece, Record
from pipeline.readers.formats import read
from pipeline.settings import Input

SAMPLE = Path(os.environ.get("ASSAY_SAMPLE", ""))
pytestmark = pytest.mark.skipif(
    "ASSAY_SAMPLE" not in os.environ, reason="ASSAY_SAMPLE names no folder with the sample corpus"
)

# The last part of a UDHR file's name, and the codec that it means.
TRUE = {
    "Latin1": "latin-1",
    "Latin2": "iso8859-2",
    "UTF8": "utf-8-sig",
    "Cyrillic": "cp1251",
    "GB2312": "gb2312",
    "HZ": "hz",
    "JIS": "iso2022_jp",
    "SJIS": "shift_jis",
    "Arabic": "cp1256",
    "Turkish": "iso8859-9",
}


def items(name: str) -> list[Record | Bad]:
    source = Input(source="t", files="*")
    return list(read(Piece(str(SAMPLE / name), name), source, "resiliparse"))


@pytest.mark.parametrize(
    ("name", "documents"),
    [
        ("en.jsonl.gz", 5917),
        ("zh.jsonl.gz", 22100),
        ("other-languages.parquet", 2035),
        ("pages-mpl.warc.gz", 831),
        ("pages.warc.gz", 544),
    ],
)
def test_every_record_comes_out(name: str, documents: int) -> None:
    found = items(name)
    assert Counter(type(item) for item in found) == {Record: documents}
    offsets = [item.offset for item in found]
    assert offsets == sorted(set(offsets))


def test_pages_in_legacy_encodings_are_readable() -> None:
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    text_of = {i.fields["url"]: i.text for i in items("pages.warc.gz") if isinstance(i, Record)}
    readable = Counter[bool]()
    with open(SAMPLE / "pages.warc.gz", "rb") as file:
        for record in ArchiveIterator(file, WarcRecordType.response):
            url = record.headers["WARC-Target-URI"]
            if "udhr" not in url:
                continue
            codec = TRUE.get(url.rpartition("-")[2])
            text = text_of[url]
            true = (
                codecs.getincrementaldecoder(codec)("replace").decode(record.reader.read())
                if codec
                else ""
            )
            same = sum(a == b for a, b in zip(text, true, strict=False))
            readable[same >= 0.99 * max(len(text), len(true))] += 1
    assert readable == {True: 90, False: 5}
