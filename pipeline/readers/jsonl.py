"""JSON Lines: one record a line. Plain files are cut anywhere, compressed ones are one piece.

orjson parses (about 1 GB/s); what it refuses and Python's own parser takes is read with that: lone
surrogate escapes, NaN, raw control characters in strings, NUL runs around a record, and a byte
order mark before one (of a file, or of files joined with `cat`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import orjson

from pipeline.readers import Bad, Piece, Record, excerpt
from pipeline.readers.rows import from_row
from pipeline.readers.streams import BrokenStream, chunks, compression, stream_of
from pipeline.settings import Input

MAX_LINE_BYTES = 256_000_000  # a longer line is `too_long`: 8 x the text of a default shard
EXPANSION = 3  # bytes of text in a byte of a compressed file, about
BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    offset: int  # of its first byte
    num_bytes: int  # without the line end
    data: bytes  # without the line end; of a line above the limit only its beginning
    fault: BrokenStream | None = None  # the stream broke inside this line


def cut(path: str, file: str, size: int, shard_bytes: int) -> list[Piece] | None:
    if compression(path) is not None:
        text = size * EXPANSION
        return [Piece(path, file, num_bytes=text)] if text <= shard_bytes else None
    borders = [*range(0, size, shard_bytes), size]
    return [
        Piece(path, file, begin, end, base=begin, num_bytes=end - begin)
        for begin, end in pairwise(borders)
    ]


def borders(stream: Iterator[bytes], shard_bytes: int) -> Iterator[bytes | None]:
    """The stream, with None behind each line end at which `shard_bytes` came since the last."""
    size = 0
    for chunk in stream:
        at = 0
        while end := chunk.find(b"\n", at + max(shard_bytes - size - 1, 0)) + 1:
            yield chunk[at:end]
            yield None
            at, size = end, 0
        if at < len(chunk):
            yield chunk[at:] if at else chunk
            size += len(chunk) - at


def read(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    """Records of the lines whose first byte lies in the piece; `extractor` has no use here."""
    del extractor
    for line in lines_of(piece):
        item = parse(line, source)
        if item is not None:
            yield item


def parse(line: Line, source: Input) -> Record | Bad | None:
    """One line to a record; None for a blank line."""
    offset, size, data, fault = line
    if fault is not None:
        return Bad(offset, size, fault.reason, fault.detail, excerpt(data))
    if size > MAX_LINE_BYTES:
        detail = f"a line of {size:,} bytes; at most {MAX_LINE_BYTES:,} are read as one record"
        return Bad(offset, size, "too_long", detail, excerpt(data))
    try:
        row = orjson.loads(data)
        if type(row) is dict:
            for value in row.values():
                if (
                    type(value) is float and abs(value) >= 2**63
                ):  # was an integer of more than 64 bits
                    row = json.loads(data)
                    break
            return from_row(row, offset, size, source)
    except orjson.JSONDecodeError:
        data = data.strip(b"\0 \t\r").removeprefix(BOM)
        if not data:
            return _blank(offset, size, line[2])
        try:
            row = json.loads(data.decode(), strict=False)
        except UnicodeDecodeError as error:
            detail = f"byte {error.start} of the line is not UTF-8: {error.reason}"
            return Bad(offset, size, "bad_utf8", detail, excerpt(data))
        except (ValueError, RecursionError) as error:
            return Bad(offset, size, "bad_json", str(error), excerpt(data))
    if not isinstance(row, dict):
        detail = f"a JSON {type(row).__name__}, not an object with a field {source.text!r}"
        return Bad(offset, size, "missing_text", detail, excerpt(data))
    return from_row(row, offset, size, source)


def _blank(offset: int, size: int, data: bytes) -> Bad | None:
    """White space is no record; a run of NUL is what a crash leaves at the end of a file."""
    if b"\0" not in data:
        return None
    detail = f"{data.count(0):,} NUL bytes and no record: a sparse file after a crash?"
    return Bad(offset, size, "nul_bytes", detail)


def lines_of(piece: Piece) -> Iterator[Line]:
    """The lines whose first byte lies in the piece; offsets are those of the original stream."""
    found = lines(*stream_from(piece))
    if piece.begin > 0:
        next(found, None)
    return found


def stream_from(piece: Piece) -> tuple[Iterator[bytes], int, int | None]:
    """The bytes of a piece, the offset of the first one, that behind its end.

    Of one that begins inside a file from one byte back: its first line is then either empty, or the
    rest of the line before, and is no line of the piece.
    """
    end = None if piece.end is None else piece.base + piece.end - piece.begin
    if piece.begin == 0:
        return stream_of(replace(piece, end=None)), piece.base, end
    return chunks(piece.path, piece.begin - 1), piece.base - 1, end


def lines(stream: Iterator[bytes], offset: int, end: int | None = None) -> Iterator[Line]:
    """Cut a stream of chunks at \\n; `offset` is that of its first byte.

    Stops at the first line that begins at or after `end`. Holds at most one line and one chunk, and
    of a line above MAX_LINE_BYTES only its beginning.
    """
    new = tuple.__new__  # a third of the time of Line(...), .3 us
    head: list[bytes] = []  # the line that the last chunk left open
    size = 0  # its bytes, those that were not kept included
    fault = None
    while end is None or offset < end:
        try:
            chunk = next(stream, None)
        except BrokenStream as error:
            chunk, fault = None, error
        if chunk is None:
            if size or fault:
                yield Line(offset, size, b"".join(head), fault)
            return
        first, *rest = chunk.split(b"\n")
        if size <= MAX_LINE_BYTES:
            head.append(first)
        size += len(first)
        for part in rest:
            if end is not None and offset >= end:
                return
            data = head[0] if len(head) == 1 else b"".join(head)
            yield new(Line, (offset, size, data, None))
            offset += size + 1
            head, size = [part], len(part)
