from __future__ import annotations

import bz2
import gzip
import zipfile
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest

from pipeline.readers import Bad, Piece, Record, RefusedFileError, mediawiki
from pipeline.readers.formats import cut, read
from pipeline.settings import Input
from pipeline.shards import Shard
from pipeline.transforms.ingest import ingest

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="zh">
  <siteinfo><sitename>Wikipedia</sitename></siteinfo>
"""
Found = list[tuple[int, str]]


def page(number: int, text: str, title: str = "水", ns: int = 0, more: str = "") -> str:
    return f"""  <page>
    <title>{title}</title><ns>{ns}</ns><id>{number}</id>{more}
    <revision><id>99{number}</id><timestamp>2026-10-01T02:03:04Z</timestamp>
      <model>wikitext</model><format>text/x-wiki</format>
      <text bytes="9" xml:space="preserve">{text}</text></revision>
  </page>
"""


def items(path: Path, shard_bytes: int = 1 << 30) -> list[Record | Bad]:
    pieces = cut(str(path), path.name, shard_bytes)
    assert pieces is not None
    source = Input(source="t", files="*")
    return [item for piece in pieces for item in read(piece, source, "resiliparse")]


def of(tmp_path: Path, *pages: str, end: str = "</mediawiki>\n") -> list[Record | Bad]:
    path = tmp_path / "a.xml"
    path.write_text(HEAD + "".join(pages) + end)
    return items(path)


def brief(found: list[Record | Bad]) -> Found:
    return [(i.offset, i.text if isinstance(i, Record) else i.reason) for i in found]


def test_a_page_and_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "zh_yuewiki-20261001-pages-articles-multistream1.xml-p1p9.bz2"
    text = page(7, "&lt;!-- c --&gt;'''水'''是[[化学|化合物]]。&lt;ref&gt;n&lt;/ref&gt;", "水 (物)")
    path.write_bytes(bz2.compress((HEAD + text).encode()))
    assert items(path) == [
        Record(
            7,
            len(text.strip().encode()),
            "水是化合物。",
            {
                "source_id": "7",
                "title": "水 (物)",
                "published_date": date(2026, 10, 1),
                "url": "https://zh-yue.wikipedia.org/wiki/%E6%B0%B4_(%E7%89%A9)",
                "domain": "zh-yue.wikipedia.org",
            },
        )
    ]


def test_what_is_no_article_has_a_reason(tmp_path: Path) -> None:
    found = of(
        tmp_path,
        page(1, "#REDIRECT [[b]]", more='<redirect title="b" />'),
        page(2, "talk", ns=1),
        page(3, " "),
        page(4, "{}").replace("<model>wikitext", "<model>json"),
        page(5, "a &broken"),
        page(6, "old</text></revision><revision><text>new"),
        page(7, "[[" * 100 + "{{" * 2000 + "&lt;b&gt;" * 3000),
        "  <page><title>no id</title></page>\n",
        "  <page><title>its own</title><revision><id>9</id></revision></page>\n",
        page(9, "good"),
    )
    assert brief(found)[:6] == [
        (1, "redirect"),
        (2, "namespace"),
        (3, "no_main_text"),
        (4, "not_wikitext"),
        (5, "bad_xml"),
        (6, "new"),
    ]
    assert found[6].offset == 7
    assert brief(found)[9:] == [(9, "good")]
    nameless = found[7:9]  # which have a place of their own each, the same wherever it is cut
    assert [item.reason for item in nameless if isinstance(item, Bad)] == ["bad_xml"] * 2
    assert nameless[0].offset != nameless[1].offset
    assert all(-(2**63) <= item.offset < -(2**62) for item in nameless)
    assert items(tmp_path / "a.xml", 100) == found


PAGES = [page(number, f"text {number} " * number) for number in range(1, 30)]


@pytest.mark.parametrize("shard_bytes", [1, 7, 100, 1_000, 5_000])
@pytest.mark.parametrize("streams", [None, 1, 10_000])
def test_each_page_once_wherever_it_is_cut(
    tmp_path: Path, shard_bytes: int, streams: int | None
) -> None:
    """`streams`: bytes in a bzip2 stream, as pbzip2 cuts them, inside pages and tags."""
    data = (HEAD + "".join(PAGES) + "</mediawiki>").encode()
    path = tmp_path / ("a.xml" if streams is None else "a.xml.bz2")
    if streams == 1:  # Wikimedia's: a stream for the head, one for some pages each
        parts = [
            HEAD,
            *("".join(PAGES[i : i + 4]) for i in range(0, len(PAGES), 4)),
            "</mediawiki>",
        ]
        path.write_bytes(b"".join(bz2.compress(part.encode()) for part in parts))
    elif streams:
        step = 997
        parts_of_bytes = [data[i : i + step] for i in range(0, len(data), step)]
        path.write_bytes(b"".join(map(bz2.compress, parts_of_bytes)))
    else:
        path.write_bytes(data)
    expected = [(n, f"text {n} " * n) for n in range(1, 30)]
    found = [(n, text + " ") for n, text in brief(items(path, shard_bytes))]
    assert found == expected
    pieces = cut(str(path), path.name, shard_bytes)
    assert pieces is not None
    assert len(pieces) > 1 or shard_bytes >= 1_000


def test_a_dump_that_ends_early(tmp_path: Path) -> None:
    assert brief(of(tmp_path, PAGES[0], PAGES[1][:-12], end="")) == [
        (1, "text 1"),
        (2, "truncated_xml"),
    ]
    data = bz2.compress(HEAD.encode()) + bz2.compress(PAGES[0].encode())
    (tmp_path / "b.xml.bz2").write_bytes(data[:-5])
    assert brief(items(tmp_path / "b.xml.bz2")) == [(1, "text 1"), (-1, "truncated_bzip2")]
    (tmp_path / "c.xml.gz").write_bytes(gzip.compress((HEAD + PAGES[0]).encode())[:-9])
    assert brief(items(tmp_path / "c.xml.gz")) == [(1, "text 1"), (-1, "truncated_gzip")]


HALVES = [PAGES[0] + PAGES[1][:60], PAGES[1][60:] + PAGES[2], PAGES[3]]  # cut inside page 2
ALL = [(n, " ".join([f"text {n}"] * n)) for n in range(1, 5)]
LOST = "damaged_bzip2"


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (None, ALL),
        # What begins in a stream is lost with it, told once; page 2 began before and tells itself.
        (0, [(-1, LOST), *ALL[2:]]),
        (1, [ALL[0], (2, LOST), (-2, LOST), ALL[3]]),
        (2, [*ALL[:3], (-3, LOST)]),
    ],
)
def test_a_fault_at_the_border_of_pieces(
    tmp_path: Path, broken: int | None, expected: Found
) -> None:
    """-1, -2, -3 stand for the places of the three pieces."""
    streams = [bytearray(bz2.compress(half.encode())) for half in HALVES]
    places = {-1 - sum(map(len, streams[:i])): -1 - i for i in range(3)}
    if broken is not None:
        streams[broken][30] ^= 0xFF
    path = tmp_path / "a.xml.bz2"
    path.write_bytes(b"".join(streams))
    assert [(places.get(at, at), what) for at, what in brief(items(path, 1))] == expected


@pytest.mark.parametrize("shard_bytes", [1, 100, 1_000, 1 << 30])
@pytest.mark.parametrize("step", [None, 23, 997])
@pytest.mark.parametrize("second", [[29], range(1, 30), [40]])
def test_dumps_joined_with_cat_are_refused_wherever_they_are_cut(
    tmp_path: Path, shard_bytes: int, step: int | None, second: Iterable[int]
) -> None:
    """The same dump twice, or another one: ids of pages would stand twice."""
    first = HEAD + "".join(PAGES) + "</mediawiki>\n"
    data = (first + HEAD + "".join(page(n, "b") for n in second) + "</mediawiki>\n").encode()
    path = tmp_path / ("a.xml" if step is None else "a.xml.bz2")
    streams = [data] if step is None else [data[i : i + step] for i in range(0, len(data), step)]
    path.write_bytes(b"".join(streams if step is None else map(bz2.compress, streams)))
    pieces = cut(str(path), path.name, shard_bytes)
    assert pieces is not None
    assert any(is_refused(piece) for piece in pieces)
    path.write_bytes(b"<?xml version='1.0'?><!--" + b" preamble" * 60 + b"-->" + first.encode())
    assert len(items(path, shard_bytes)) == 29


def is_refused(piece: Piece) -> bool:
    try:
        list(read(piece, Input(source="t", files="*"), "resiliparse"))
    except RefusedFileError:
        return True
    return False


def test_a_refused_dump_is_named_with_the_way_out(tmp_path: Path) -> None:
    """In a zip, too; and `max_bad_files` lets no id stand twice."""
    path = tmp_path / "a.xml"
    path.write_text((HEAD + page(1, "a") + "</mediawiki>\n") * 2)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(path, "in/b.xml")
    source = Input(source="t", files="*")
    for name, shown in (("a.xml", "a.xml"), ("a.zip", "in/b.xml")):
        pieces = cut(str(tmp_path / name), name, 1 << 30)
        assert pieces is not None
        shard = Shard(0, "t", tuple(pieces), text_bytes=0, version="")
        message = f"^{shown}: a second <mediawiki> begins in it .* `csplit FILE '/<mediawiki/' "
        with pytest.raises(RefusedFileError, match=message):
            ingest(tmp_path / "corpus", shard, source, "", (), None, tolerant=True)


def test_other_xml_and_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<rss><channel/></rss>")
    (bad,) = items(path)
    assert isinstance(bad, Bad)
    assert (bad.offset, bad.reason) == (-1, "bad_xml")
    assert bad.detail == "no <mediawiki> at its beginning: of XML, exports of MediaWiki are read"
    path.write_text("")
    assert items(path) == []
    assert of(tmp_path) == []


def test_a_page_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mediawiki, "MAX_PAGE_BYTES", 2_000)
    found = of(tmp_path, page(1, "x" * 3_000_000), page(2, "good"))
    assert brief(found) == [(1, "too_long"), (2, "good")]
