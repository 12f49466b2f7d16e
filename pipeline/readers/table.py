"""CSV and TSV: one record a row, offset = byte of the stream where the row begins.

The first row names the columns; the text is that of `text`, others are kept as `keep` says. Quoting
is that of RFC 4180, checked. The encoding is told by the first megabyte; a byte that is wrong in it
costs its row. A row of several lines that is not well formed costs its first line only, and reading
goes on with the second: a quote that is never closed does not swallow the rest of the file.

A file is one piece, however large: a line end inside quotes cannot be told without reading from the
start. UTF-16 (Excel's "Unicode text") is read as the UTF-8 that it says; offsets count its bytes.
"""

from __future__ import annotations

import codecs
import csv
from collections import deque
from collections.abc import Iterator
from itertools import chain, starmap
from typing import NamedTuple

from pipeline.pages.charset import BadCharset, decode
from pipeline.readers import Bad, Piece, Record, excerpt
from pipeline.readers.jsonl import lines
from pipeline.readers.rows import from_row
from pipeline.readers.streams import BrokenStream, chunks, compression
from pipeline.settings import Input

EXPANSION = 3  # bytes of text in a byte of a compressed file, about
HEAD_BYTES = 1_000_000  # that the encoding is told by
MAX_ROW_BYTES = 32_000_000  # that an open quote may hold before it counts as never closed
DELIMITERS = ",\t;|"  # the first with which the header names the column of the text


class Line(NamedTuple):
    offset: int
    num_bytes: int  # without the line end
    data: bytes
    fault: BrokenStream | None  # in which the stream broke off inside the line


class BadRow(ValueError):
    """What is wrong with a row; the lines behind its first may be rows of their own."""


def cut(path: str, file: str, size: int, shard_bytes: int) -> list[Piece]:
    text = size * (EXPANSION if compression(path) else 1)
    return [Piece(path, file, num_bytes=text)] if size else []


def read(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    del extractor
    head, rest = _head(chunks(piece.path))
    try:
        codec = decode(head)[1]
    except BadCharset as error:
        yield Bad(0, piece.num_bytes or len(head), "bad_charset", str(error), excerpt(head))
        return
    stream: Iterator[bytes] = chain([head], rest)
    if codec.startswith(("utf-16", "utf-32")):
        stream, codec = _utf8(stream, codec), "utf-8"
    csv.field_size_limit(MAX_ROW_BYTES)  # of the process; 131,072 characters by default
    back: deque[Line] = deque()  # lines of a row that was not well formed, but for its first
    found = starmap(Line, lines(stream, 0))
    delimiter = ","
    columns: list[str] = []
    while (line := back.popleft() if back else next(found, None)) is not None:
        if not columns:
            delimiter = _delimiter(_text(line, codec), source.text)
        used = [line]
        try:
            values = _row(used, chain(_taken(back), found), codec, delimiter)
            if columns and values and len(values) != len(columns):
                raise BadRow(f"{len(values)} fields, where the header names {len(columns)}")
        except BadRow as error:
            back.extendleft(reversed(used[1:]))
            reason, detail = line.fault.reason if line.fault else "bad_csv", str(error)
            yield Bad(line.offset, line.num_bytes, reason, detail, excerpt(line.data))
            continue
        num_bytes = used[-1].offset + used[-1].num_bytes - line.offset
        try:
            for part in used:
                part.data.decode(codec)
        except UnicodeDecodeError as error:
            detail = f"byte {error.start} of a line is not {codec}: {error.reason}"
            reason = "bad_utf8" if codec == "utf-8" else "bad_charset"
            yield Bad(line.offset, num_bytes, reason, detail, excerpt(line.data))
            continue
        if not columns:
            columns = values
        elif values:  # an empty line holds none
            item = from_row(dict(zip(columns, values, strict=True)), line.offset, num_bytes, source)
            if isinstance(item, Record):
                item.fields["charset"] = codec
            yield item


def _row(used: list[Line], following: Iterator[Line], codec: str, delimiter: str) -> list[str]:
    """The fields of the row that begins with the one line of `used`; what it takes of `following`
    is added to `used`.

    Raises:
        BadRow: it is not well formed.
    """

    def texts() -> Iterator[str]:
        size = 0
        line: Line | None = used[0]
        while line is not None:
            size += line.num_bytes
            if line.fault is not None:
                raise BadRow(line.fault.detail)
            if size > MAX_ROW_BYTES:
                raise BadRow(f"more than {MAX_ROW_BYTES:,} bytes: is a quote never closed?")
            yield _text(line, codec) + "\n"
            line = next(following, None)
            if line is not None:
                used.append(line)

    try:
        return next(csv.reader(texts(), delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise BadRow(str(error)) from None


def _text(line: Line, codec: str) -> str:
    text = line.data.decode(codec, "replace")
    return text.removeprefix("\ufeff") if line.offset == 0 else text


def _delimiter(header: str, text: str) -> str:
    for delimiter in DELIMITERS:
        try:
            if text in next(csv.reader([header], delimiter=delimiter), []):
                return delimiter
        except csv.Error:
            continue
    return ","


def _taken(back: deque[Line]) -> Iterator[Line]:
    while back:
        yield back.popleft()


def _head(stream: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The beginning of a stream, and all behind it, a fault included."""
    head = bytearray()
    try:
        for chunk in stream:
            head += chunk
            if len(head) >= HEAD_BYTES:
                break
    except BrokenStream as error:
        return bytes(head), _broken(error)
    return bytes(head), stream


def _broken(error: BrokenStream) -> Iterator[bytes]:
    yield b""
    raise error


def _utf8(stream: Iterator[bytes], codec: str) -> Iterator[bytes]:
    """Text in another encoding as UTF-8, a wrong character as U+FFFD."""
    decoder = codecs.getincrementaldecoder(codec)("replace")
    for chunk in stream:
        yield decoder.decode(chunk).encode("utf-8", "replace")
