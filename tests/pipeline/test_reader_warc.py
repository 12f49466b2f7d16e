from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pipeline.readers import Bad, Piece, Record, warc, warc_records
from pipeline.readers.formats import read
from pipeline.readers.spill import spill
from pipeline.settings import Input

SOURCE = Input(source="t", files="*.warc.gz")


def record(kind: str, content_type: str, block: bytes, *headers: str) -> bytes:
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        "WARC-Target-URI: https://A.example:443/x",
        "WARC-Date: 2026-10-02T03:04:05Z",
        *headers,
        f"Content-Type: {content_type}",
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def page(
    body: bytes, content_type: str = "text/html", status: str = "200 OK", more: str = ""
) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{more}\r\n".encode()
    return record("response", "application/http; msgtype=response", head + body)


def items(path: Path, shard_bytes: int = 1 << 30) -> list[Record | Bad]:
    pieces = warc.cut(str(path), path.name, path.stat().st_size, shard_bytes)
    if pieces is None:
        pieces = spill(str(path), path.name, path.parent / f"cut-{shard_bytes}", shard_bytes)
    return [item for piece in pieces for item in read(piece, SOURCE, "resiliparse")]


def of(tmp_path: Path, *records: bytes) -> list[Record | Bad]:
    path = tmp_path / "in.warc"
    path.write_bytes(b"".join(records))
    return items(path)


def brief(found: list[Record | Bad]) -> list[tuple[int, str]]:
    return [(i.offset, i.text if isinstance(i, Record) else i.reason) for i in found]


def test_a_page_and_its_columns(tmp_path: Path) -> None:
    body = "<html><head><title>题</title></head><body><p>水。</p></body></html>".encode()
    raw = page(body, "text/html; charset=UTF-8", more="X-Robots-Tag: noai\r\n")
    assert of(tmp_path, raw) == [
        Record(
            0,
            len(raw) - 4,
            "水。",
            {
                "url": "https://A.example:443/x",
                "domain": "a.example",
                "http_status": 200,
                "crawl_date": datetime(2026, 10, 2, 3, 4, 5),
                "x_robots_tag": "noai",
                "charset": "utf-8",
                "title": "题",
            },
        )
    ]


def test_which_records_are_documents(tmp_path: Path) -> None:
    found = of(
        tmp_path,
        record("warcinfo", "application/warc-fields", b"software: x"),
        record("request", "application/http; msgtype=request", b"GET / HTTP/1.1\r\n\r\n"),
        record("metadata", "application/warc-fields", b"a: b"),
        record("conversion", "text/plain", "纯文本".encode()),
        record("resource", "text/html", b"<p>resource"),
        page(b"<p>page"),
        page(b"<p>xhtml", "application/xhtml+xml"),
        page(b"a\r\nb", "text/plain"),
    )
    assert [value for _, value in brief(found)] == ["纯文本", "resource", "page", "xhtml", "a\r\nb"]


@pytest.mark.parametrize(
    ("raw", "reason", "detail"),
    [
        (page(b"%PDF", "application/pdf"), "not_text", "content type 'application/pdf' of https:"),
        (page(b"<p>x", ""), "not_text", "content type '' of https://A.example:443/x"),
        (page(b"<p>x", status="404 Not Found"), "http_status", "status 404 of https://A.example"),
        (page(b"<p>x", status="301 Moved"), "http_status", "status 301 of https://A.example"),
        (page(b"<html></html>"), "no_main_text", "13 bytes of HTML hold no text (https://A."),
        (page(b"", "text/plain"), "no_main_text", "0 bytes hold no text (https://A.example:443/x)"),
        (page(b"\0\1" * 99 + b"\0" * 99), "bad_charset", "297 bytes fit none of utf-8, cp1252"),
        (b"WARC/1.0\r\nWARC-Type: response\r\n\r\n\r\n", "bad_warc", "no WARC record begins here"),
        (b"garbage\r\n\r\n", "bad_warc", "no WARC record begins here, or its Content-Length is"),
    ],
    ids=range(9),
)
def test_a_bad_record_costs_itself(tmp_path: Path, raw: bytes, reason: str, detail: str) -> None:
    first = page(b"<p>first")
    found = of(tmp_path, first, raw, page(b"<p>last"))
    assert brief(found) == [(0, "first"), (len(first), reason), (len(first + raw), "last")]
    assert isinstance(found[1], Bad)
    assert found[1].detail.startswith(detail)


def test_encodings_are_undone_and_a_wrong_header_is_survived(tmp_path: Path) -> None:
    packed = gzip.compress(b"<p>packed")
    chunked = b"%x\r\n" % len(packed) + packed + b"\r\n0\r\n\r\n"
    more = "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"
    found = of(tmp_path, page(chunked, more=more), page(b"<p>plain", more=more))
    assert [value for _, value in brief(found)] == ["packed", "plain"]


def test_truncated_header_says_so(tmp_path: Path) -> None:
    raw = record("resource", "text/plain", b"half", "WARC-Truncated: length")
    (found,) = of(tmp_path, raw)
    assert isinstance(found, Record)
    assert found.fields["truncated"] == "length"


PAGES = [page(b"<p>page %d " % i + bytes([97 + i % 26]) * i) for i in range(300)]


def _plain(path: Path) -> bytes:
    path.write_bytes(b"".join(PAGES))
    return path.read_bytes()


def _members(path: Path) -> bytes:
    path.write_bytes(b"".join(gzip.compress(p, mtime=0) for p in PAGES))
    return path.read_bytes()


def _one_member(path: Path) -> bytes:
    path.write_bytes(gzip.compress(b"".join(PAGES), mtime=0))
    return path.read_bytes()


def _zst(path: Path) -> bytes:
    path.write_bytes(zstandard.compress(b"".join(PAGES)))
    return path.read_bytes()


@pytest.mark.parametrize("write", [_plain, _members, _one_member, _zst])
def test_any_cut_gives_the_same_records(tmp_path: Path, write: Callable[[Path], bytes]) -> None:
    path = tmp_path / "in.warc.gz"
    write(path)
    whole = items(path)
    offsets = [sum(map(len, PAGES[:i])) for i in range(300)]
    assert [item.offset for item in whole] == offsets
    for shard_bytes in (1, 5_000, 50_000):
        assert items(path, shard_bytes) == whole
    pieces = warc.cut(str(path), path.name, path.stat().st_size, 5_000)
    assert (pieces is None) == (write in (_one_member, _zst))
    assert pieces is None or len(pieces) > 10


@pytest.mark.parametrize("write", [_plain, _members, _one_member])
@pytest.mark.parametrize("share", [0.31, 0.7])
def test_all_before_the_cut_is_kept(
    tmp_path: Path, write: Callable[[Path], bytes], share: float
) -> None:
    path = tmp_path / "in.warc.gz"
    data = write(path)
    whole = items(path)
    path.write_bytes(data[: int(len(data) * share)])
    *before, last = items(path)
    assert len(before) > 30
    assert before == whole[: len(before)]
    assert isinstance(last, Bad)
    reason = "truncated_warc" if write is _plain else "truncated_gzip"
    assert (last.reason, last.offset) == (reason, whole[len(before)].offset)


@pytest.mark.parametrize("keep", [3, 40, 150])
def test_a_cut_in_the_header_of_a_record(tmp_path: Path, keep: int) -> None:
    found = of(tmp_path, PAGES[0], PAGES[1][:keep])
    assert brief(found) == [(0, "page 0"), (len(PAGES[0]), "truncated_warc")]


def test_a_cut_between_members_is_no_fault_and_a_wrong_crc_is(tmp_path: Path) -> None:
    path = tmp_path / "in.warc.gz"
    data = bytearray(b"".join(gzip.compress(p, mtime=0) for p in PAGES[:5]))
    path.write_bytes(bytes(data))
    assert len(items(path)) == 5
    data[-8] ^= 1
    path.write_bytes(bytes(data))
    *before, last = items(path)
    assert len(before) == 5
    assert isinstance(last, Bad)
    assert (last.reason, last.offset) == ("damaged_gzip", sum(map(len, PAGES[:5])))


def test_a_record_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc_records, "MAX_RECORD_BYTES", 10_000)
    large = page(b"<p>" + b"x" * 2_000_000)
    found = of(tmp_path, PAGES[0], large, PAGES[1])
    assert [value for _, value in brief(found)] == ["page 0", "too_long", "page 1 b"]


def test_an_empty_file(tmp_path: Path) -> None:
    assert of(tmp_path) == []


def test_wet_is_utf8_text_whose_headers_can_be_kept(tmp_path: Path) -> None:
    """Short text that could be GBK too: a conversion record is UTF-8 by definition."""
    languages = "WARC-Identified-Content-Language: zho,eng"
    raw = record("conversion", "text/plain", "浣犲ソ\n".encode(), languages)
    info = record("warcinfo", "application/warc-fields", b"isPartOf: CC-MAIN-2026-40\r\n")
    path = tmp_path / "a.warc.wet.gz"
    path.write_bytes(gzip.compress(info) + gzip.compress(raw))
    keep = ("WARC-Identified-Content-Language", "WARC-Absent")
    source = Input(source="t", files="*", keep=keep)
    assert list(read(Piece(str(path), path.name), source, "resiliparse")) == [
        Record(
            len(info),
            len(raw) - 4,
            "浣犲ソ\n",
            {
                "url": "https://A.example:443/x",
                "domain": "a.example",
                "crawl_date": datetime(2026, 10, 2, 3, 4, 5),
                "charset": "utf-8",
                "meta": {"WARC-Identified-Content-Language": "zho,eng"},
            },
        )
    ]


@given(
    pieces=st.lists(
        st.sampled_from([*PAGES[:4], b"junk\r\n", b"\r\n", b"WARC/1.0\r\n\r\n", PAGES[5][:150]])
        | st.just(page(b"a\r\n\r\nWARC/1.0\r\nContent-Length: 3\r\n\r\nabc")),
        max_size=12,
    ),
    chunk=st.integers(1, 400),
    shard_bytes=st.integers(1, 900),
)
def test_shards_at_borders_hold_what_the_stream_holds(
    pieces: list[bytes], chunk: int, shard_bytes: int
) -> None:
    data = b"".join(pieces)
    stream = [data[at : at + chunk] for at in range(0, len(data), chunk)]
    shards: list[list[bytes]] = [[]]
    for part in warc.borders(iter(stream), shard_bytes):
        if part is None:
            shards.append([])
        else:
            shards[-1].append(part)
    assert b"".join(map(b"".join, shards)) == data
    assert all(len(b"".join(shard)) >= shard_bytes for shard in shards[:-1])
    found, base = [], 0
    for shard in shards:
        found += warc_records.frame(iter(shard), base)
        base += sum(map(len, shard))
    assert found == list(warc_records.frame(iter(stream)))


def test_a_broken_stream_breaks_behind_its_last_shard(tmp_path: Path) -> None:
    path = tmp_path / "in.warc.gz"
    path.write_bytes(_one_member(path)[:-2_000])
    whole = items(path)
    assert isinstance(whole[-1], Bad)
    assert items(path, 5_000) == whole
