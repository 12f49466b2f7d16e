"""Plain text and HTML: one file, one document. Line ends of plain text stay as they are, so
hard-wrapped Chinese gets no spaces."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.pages.charset import BadCharset
from pipeline.pages.page import NoText, html_page, text_page
from pipeline.readers import Bad, Piece, Record, excerpt
from pipeline.readers.streams import BrokenStream, chunks, compression
from pipeline.settings import Input

EXPANSION = 3  # bytes of text in a byte of a compressed file, about
MAX_FILE_BYTES = 256_000_000


def cut(path: str, file: str, size: int, shard_bytes: int) -> list[Piece]:
    return [Piece(path, file, num_bytes=size * (EXPANSION if compression(path) else 1))]


def read_text(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    del source, extractor
    return _read(piece, None)


def read_html(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    del source
    return _read(piece, extractor)


def _read(piece: Piece, extractor: str | None) -> Iterator[Record | Bad]:
    """The file as one item, as HTML for an extractor; an empty file holds none."""
    data = bytearray()
    size = 0
    try:
        for chunk in chunks(piece.path):
            size += len(chunk)
            if size <= MAX_FILE_BYTES:
                data += chunk
    except BrokenStream as error:
        yield Bad(0, size, error.reason, error.detail, excerpt(bytes(data[:1000])))
        return
    if not size:
        return
    raw = bytes(data)
    if size > MAX_FILE_BYTES:
        detail = f"a file of {size:,} bytes; at most {MAX_FILE_BYTES:,} are read as one document"
        yield Bad(0, size, "too_long", detail, excerpt(raw))
        return
    try:
        text, fields = html_page(raw, None, extractor) if extractor else text_page(raw, None)
        yield Record(0, size, text, fields)
    except BadCharset as error:
        yield Bad(0, size, "bad_charset", str(error), excerpt(raw))
    except NoText as error:
        yield Bad(0, size, "no_main_text", str(error), excerpt(raw))
