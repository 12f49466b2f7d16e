"""`.json`: JSON Lines, or one array of objects, or objects written over several lines.

The beginning says which: a `[` opens an array, a first line `{` an object that goes on. These are
read by ijson (a stream in C, 100 MB/s and more) in the memory of one object; offset = place of the
object, counted from 0. A byte that is not UTF-8 costs a character. What is no JSON ends the file:
there is no next line to go on with, so all behind it is one reject.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import ijson

from pipeline.readers import Bad, Piece, Record, excerpt, jsonl
from pipeline.readers.rows import as_text, from_row
from pipeline.readers.streams import BrokenStream, chunks, compression, text_at
from pipeline.settings import Input


def cut(path: str, file: str, size: int, shard_bytes: int) -> list[Piece] | None:
    if not size or _first(path) is None:
        return jsonl.cut(path, file, size, shard_bytes)
    return [Piece(path, file, num_bytes=size * (jsonl.EXPANSION if compression(path) else 1))]


def read(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    whole = piece.begin == 0 and piece.end is None and not piece.spilled
    first = _first(piece.path) if whole else None
    if first is None:
        yield from jsonl.read(piece, source, extractor)
        return
    stream = _Utf8(chunks(piece.path))
    objects = ijson.items(stream, "item" if first == "[" else "", multiple_values=True)
    place = 0
    while True:
        try:
            row = next(objects, None)
        except (ijson.JSONError, BrokenStream) as error:
            reason = error.reason if isinstance(error, BrokenStream) else "bad_json"
            detail = error.detail if isinstance(error, BrokenStream) else str(error).split("\n")[0]
            yield Bad(place, 0, reason, f"all behind object {place:,} is not read: {detail}")
            return
        if row is None:
            return
        yield _item(row, place, source)
        place += 1


def raw(path: str, offset: int, num_bytes: int) -> str:
    """A reject of JSON Lines as it lies there; of the others its excerpt must do."""
    return "" if _first(path) else text_at(path, offset, num_bytes)


def _item(row: Any, place: int, source: Input) -> Record | Bad:
    if not isinstance(row, dict):
        detail = f"a JSON {type(row).__name__}, not an object with a field {source.text!r}"
        return Bad(place, 0, "missing_text", detail, excerpt(as_text(row)))
    text = row.get(source.text)
    size = len(text.encode("utf-8", "replace")) if isinstance(text, str) else 0
    floats = {key: float(v) if isinstance(v, Decimal) else v for key, v in row.items()}
    return from_row(floats, place, size, source)


def _first(path: str) -> str | None:
    """`[` of an array, `{` of an object over several lines, None for JSON Lines."""
    try:
        head = next(chunks(path), b"").removeprefix(codecs.BOM_UTF8).lstrip()
    except BrokenStream:
        return None
    if head.startswith(b"["):
        return "["
    return "{" if head.split(b"\n", 1)[0].strip() == b"{" else None


class _Utf8:
    """A stream of chunks as the file that ijson reads; a wrong byte becomes U+FFFD."""

    def __init__(self, stream: Iterator[bytes]) -> None:
        self.stream = stream
        self.decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode

    def read(self, size: int) -> bytes:
        """The next chunk, whatever its size; ijson asks for nothing with 0."""
        if not size:
            return b""
        for chunk in self.stream:
            if text := self.decode(chunk):
                return text.encode()
        return b""
