"""Plain text, Markdown and HTML: one file, one document.

Line ends of plain text stay as they are, so hard-wrapped Chinese gets no spaces. A byte that is
wrong in the encoding of the file costs one character (U+FFFD). Markdown stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pipeline.pages.charset import BadCharset
from pipeline.pages.page import NoText, html_page, text_page
from pipeline.readers import Bad, Piece, Record, excerpt
from pipeline.readers.streams import BrokenStream, chunks, compression
from pipeline.settings import Input

EXPANSION = 3  # bytes of text in a byte of a compressed file, about
MAX_FILE_BYTES = 256_000_000

Parse = Callable[[bytes], tuple[str, dict[str, Any]]]  # raises BadCharset, NoText, Refused

_FRONT = re.compile(r"\A---[ \t]*\r?\n.*?^---", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"^title:[ \t]*(\S.*)$", re.MULTILINE)
_HEADING = re.compile(r"^# +(\S.*)$", re.MULTILINE)


class Refused(ValueError):
    """A file is no document: (reason, detail)."""


def cut(path: str, file: str, size: int, shard_bytes: int) -> list[Piece]:
    return [Piece(path, file, num_bytes=size * (EXPANSION if compression(path) else 1))]


def read_text(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    del source, extractor
    return read_whole(piece, lambda raw: text_page(raw, None))


def read_markdown(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    """Its title is that of the front matter, or the first heading."""
    del source, extractor
    return read_whole(piece, markdown)


def read_html(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    """`keep: [hreflang]` takes its links to translations along."""
    return read_whole(piece, lambda raw: html_page(raw, None, extractor, source.keep))


def markdown(raw: bytes) -> tuple[str, dict[str, Any]]:
    text, fields = text_page(raw, None)
    title = title_of(text)
    return text, {**fields, "title": title} if title else fields


def title_of(text: str) -> str | None:
    """`title:` of YAML front matter, else the first heading `# ...`."""
    front = _FRONT.match(text)
    found = (front and _KEY.search(front[0])) or _HEADING.search(text)
    return found[1].strip().strip("\"'").rstrip("#").strip() or None if found else None


def read_whole(piece: Piece, parse: Parse) -> Iterator[Record | Bad]:
    """The file as one item; an empty file holds none."""
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
        text, fields = parse(raw)
        yield Record(0, size, text, fields)
    except Refused as error:
        reason, detail = error.args
        yield Bad(0, size, reason, detail, excerpt(raw))
    except BadCharset as error:
        yield Bad(0, size, "bad_charset", str(error), excerpt(raw))
    except NoText as error:
        yield Bad(0, size, "no_main_text", str(error), excerpt(raw))
