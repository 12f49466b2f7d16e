"""WARC and WET, plain or compressed: one page a record, offset = that of the record, uncompressed.

Records are framed by warc_records.py and read by fastwarc one at a time. Whether a record is a page
is told by its declared type, never by a sniffed one: datatrove lost 954 of 1,203 pages to sniffing.
"""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from fastwarc.warc import ArchiveIterator, WarcRecordType

from pipeline.pages.charset import BadCharset
from pipeline.pages.page import NoText, html_page, text_page
from pipeline.readers import Bad, Piece, Record, excerpt
from pipeline.readers.rows import as_text, domain
from pipeline.readers.streams import BrokenStream, chunks, compression, members, stream_of
from pipeline.readers.warc_records import MAX_RECORD_BYTES, Raw, frame
from pipeline.settings import Input

EXPANSION = 4  # bytes of HTML in a byte of a compressed file, about
HTML_TYPES = ("text/html", "application/xhtml+xml")

_READ = WarcRecordType.response | WarcRecordType.resource | WarcRecordType.conversion


def cut(path: str, file: str, size: int, shard_bytes: int) -> list[Piece] | None:
    """Ranges at record borders. A .warc.gz with a member a record is scanned for them (700 MB/s);
    None: it has a single member, or is .zst, .bz2 or .xz."""
    kind = compression(path)
    text = size * (EXPANSION if kind else 1)
    if text <= shard_bytes:
        return [Piece(path, file, num_bytes=text)] if size else []
    starts: Iterable[tuple[int, int]] | None
    if kind is None:
        starts = ((raw.offset,) * 2 for raw in frame(chunks(path)))
    else:
        starts = members(path, MAX_RECORD_BYTES) if kind == "gzip" else None
        if starts is None or len(starts) == 1:
            return None
    cuts = [(0, 0)]
    for begin, base in starts:
        if base - cuts[-1][1] >= shard_bytes:
            cuts.append((begin, base))
    ends: list[int | None] = [begin for begin, _ in cuts[1:]]
    return [
        Piece(path, file, begin, end, base, text // len(cuts))
        for (begin, base), end in zip(cuts, [*ends, None], strict=True)
    ]


def borders(stream: Iterator[bytes], shard_bytes: int) -> Iterator[bytes | None]:
    """The stream, with None where a record begins and `shard_bytes` came since the last.

    Never behind a faulty record: where that ends is told by what follows.
    """
    held: deque[bytes] = deque()  # what `frame` has read of the stream and was not yet given
    faults: list[BrokenStream] = []

    def read_by_frame() -> Iterator[bytes]:
        try:
            for chunk in stream:
                held.append(chunk)
                yield chunk
        except BrokenStream as error:
            faults.append(error)
            raise

    begin = given = 0
    whole = True
    for raw in frame(read_by_frame()):
        while held and given + len(held[0]) <= raw.offset:
            given += len(held[0])
            yield held.popleft()
        if raw.offset - begin >= shard_bytes and whole:
            if given < raw.offset:
                chunk = held.popleft()
                held.appendleft(chunk[raw.offset - given :])
                yield chunk[: raw.offset - given]
            yield None
            begin = given = raw.offset
        whole = not raw.fault
    yield from held
    if faults:
        raise faults[0]


def read(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    """The pages of a piece; request, metadata, revisit and warcinfo records are no documents.

    `keep` names headers of the record, as in `[WARC-Identified-Content-Language]` of a WET file;
    `hreflang` is what the page links as its translations.
    """
    for raw in frame(stream_of(piece), piece.base):
        item = _item(raw, source.keep, extractor)
        if item is not None:
            yield item


def _item(raw: Raw, keep: tuple[str, ...], extractor: str) -> Record | Bad | None:
    def bad(reason: str, detail: str, shown: bytes | str = b"") -> Bad:
        return Bad(raw.offset, raw.num_bytes, reason, detail, excerpt(shown or raw.data))

    if raw.fault:
        return bad(raw.fault, raw.detail)
    try:
        record = next(ArchiveIterator(io.BytesIO(raw.data), _READ, auto_decode="all"), None)
        if record is None:
            return None
        payload = _payload(record, raw.data)
    except OSError as error:
        return bad("bad_warc", f"fastwarc cannot read the record: {error}")
    url = as_text(record.headers.get("WARC-Target-URI") or "").strip("<> ")
    http = record.http_headers
    status = http.status_code if http is not None else None
    if status is not None and not 200 <= status < 300:
        return bad("http_status", f"status {status} of {url}")
    declared = (http if http is not None else record.headers).get("Content-Type") or ""
    content_type = declared.partition(";")[0].strip().lower()
    fields: dict[str, Any] = {"url": url or None, "domain": domain(url), "http_status": status}
    fields["crawl_date"] = _date(record.headers.get("WARC-Date"))
    fields["truncated"] = record.headers.get("WARC-Truncated")
    fields["x_robots_tag"] = http.get("X-Robots-Tag") if http is not None else None
    headers = {name: record.headers.get(name) for name in keep}
    kept = {name: as_text(value) for name, value in headers.items() if value}
    if record.record_type == WarcRecordType.conversion and "charset" not in declared:
        declared += "; charset=utf-8"  # what WET is, by its definition
    try:
        if content_type in HTML_TYPES:
            text, page = html_page(payload, charset_of(declared), extractor, keep, url)
        elif content_type == "text/plain":
            text, page = text_page(payload, charset_of(declared))
        else:
            return bad("not_text", f"content type {declared!r} of {url}", payload)
    except BadCharset as error:
        return bad("bad_charset", f"{error} ({url})", payload)
    except NoText as error:
        return bad("no_main_text", f"{error} ({url})", payload)
    if keep:
        page["meta"] = kept | page.get("meta", {})
    found = {key: value for key, value in {**fields, **page}.items() if value is not None}
    return Record(raw.offset, raw.num_bytes, text, found)


def _payload(record: Any, data: bytes) -> bytes:
    """The body, transfer and content encodings undone; as it lies where they are not true."""
    try:
        return bytes(record.reader.read())
    except OSError:  # Common Crawl keeps the headers of encodings that it has undone
        again = next(ArchiveIterator(io.BytesIO(data), _READ, auto_decode="none"))
        return bytes(again.reader.read())


def charset_of(content_type: str) -> str | None:
    match = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", content_type, re.IGNORECASE)
    return match[1] if match else None


def _date(value: str | None) -> datetime | None:
    """WARC-Date as UTC without a zone, whole seconds."""
    try:
        date = datetime.fromisoformat(value or "")
    except ValueError:
        return None
    date = date.replace(tzinfo=date.tzinfo or UTC).astimezone(UTC)
    return date.replace(tzinfo=None, microsecond=0)
