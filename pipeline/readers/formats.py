"""The visible table of input formats. A new one: a file with `cut` and `read`, and a line here."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pipeline.readers import (
    Bad,
    Piece,
    Record,
    Rows,
    archive,
    document,
    epub,
    json_array,
    jsonl,
    jsonl_rows,
    mediawiki,
    parquet,
    pdf,
    streams,
    table,
    token_files,
    warc,
)
from pipeline.readers.files import file_size
from pipeline.settings import Input

Read = Callable[[Piece, Input, str], Iterator[Record | Bad]]


@dataclass(frozen=True)
class Reader:
    suffixes: tuple[str, ...]
    cut: Callable[[str, str, int, int], list[Piece] | None]
    read: Read
    # A reject as it lies in its file (path, offset, num_bytes); None: offsets count no bytes.
    raw: Callable[[str, int, int], str] | None = streams.text_at
    extra: tuple[str, str] | None = None  # a module that not everybody has, and its extra
    packages: tuple[str, ...] = ()  # that decide what is read, by distribution: in fingerprints
    borders: Callable[[Iterator[bytes], int], Iterator[bytes | None]] | None = None
    read_rows: Callable[[Piece, Input, str], Iterator[Rows | Record | Bad]] | None = None


def reader_of(name: str) -> Read:
    """How to read a member of an archive.

    Raises:
        ValueError: no format has its suffix, or it is an archive itself.
    """
    key = _key(name)
    if key is None:
        raise ValueError("no reader for its suffix")
    if key in ARCHIVES:
        raise ValueError("an archive in an archive is not read; unpack it first")
    if key in PAIRS:
        raise ValueError("token files in an archive are not read; unpack it first")
    return READERS[format_of(name)].read


PAGES = ("resiliparse",)  # encodings of text, and HTML

READERS: dict[str, Reader] = {
    "jsonl": Reader(
        (".jsonl", ".ndjson"),
        jsonl.cut,
        jsonl.read,
        borders=jsonl.borders,
        packages=("orjson",),
        read_rows=jsonl_rows.read_rows,
    ),
    "json": Reader(
        (".json",),
        json_array.cut,
        json_array.read,
        json_array.raw,
        borders=jsonl.borders,
        packages=("ijson",),
    ),
    "parquet": Reader((".parquet",), parquet.cut, parquet.read, parquet.row_text),
    "warc": Reader(
        (".warc", ".wet"),
        warc.cut,
        warc.read,
        borders=warc.borders,
        packages=("fastwarc", *PAGES),
    ),
    "text": Reader((".txt", ".text"), document.cut, document.read_text, packages=PAGES),
    "markdown": Reader((".md", ".markdown"), document.cut, document.read_markdown, packages=PAGES),
    "html": Reader((".html", ".htm", ".xhtml"), document.cut, document.read_html, packages=PAGES),
    "csv": Reader((".csv", ".tsv"), table.cut, table.read, packages=PAGES),
    "epub": Reader((".epub",), epub.cut, epub.read, None, packages=PAGES),
    "mediawiki": Reader(
        (".xml",), mediawiki.cut, mediawiki.read, None, packages=("mwparserfromhell",)
    ),
    "pdf": Reader(
        (".pdf",), document.cut, pdf.read, None, ("pypdfium2", "pdf"), packages=("pypdfium2",)
    ),
    "tokens": Reader(
        (".bin", ".ds"), token_files.cut, token_files.read, None, packages=("tokenizers",)
    ),
    "zip": Reader((".zip",), archive.cut_zip, partial(archive.read_zip, reader_of=reader_of), None),
    "tar": Reader(
        (".tar", ".tgz", ".tbz2", ".txz"),
        archive.cut_tar,
        partial(archive.read_tar, reader_of=reader_of),
        None,
    ),
}
ARCHIVES = ("zip", "tar")  # of files in any other format, but
PAIRS = ("tokens",)  # what is read with a second file beside it

COMPRESSED = tuple(streams.SUFFIXES)  # looked through; the bytes say which it is
PAGE_RANGE = re.compile(r"-p\d+p\d+$")  # enwiki-20261001-pages-articles1.xml-p1p41242.bz2


def format_of(path: str) -> str:
    """The key of READERS for a file, by its suffix.

    Raises:
        ValueError: no format has this suffix, or it needs what is not installed.
    """
    key = _key(path)
    if key is None:
        known = ", ".join(suffix for reader in READERS.values() for suffix in reader.suffixes)
        raise ValueError(
            f"{path}: no reader for this suffix; known: {known}, "
            f"each also with {', '.join(COMPRESSED)}"
        )
    extra = READERS[key].extra
    if extra is not None and importlib.util.find_spec(extra[0]) is None:
        raise ValueError(f"{path}: needs {extra[0]}; pip install 'assay[{extra[1]}]'")
    return key


def packages_of(key: str) -> tuple[str, ...]:
    """Distributions that decide what a reader makes of a file; of an archive those of all formats
    that can be read here."""
    if key not in ARCHIVES:
        return READERS[key].packages
    members = [reader for name, reader in READERS.items() if name not in PAIRS]
    here = (r for r in members if not r.extra or importlib.util.find_spec(r.extra[0]))
    return tuple(sorted({package for reader in here for package in reader.packages}))


def _key(path: str) -> str | None:
    name = path.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    name = PAGE_RANGE.sub("", name)
    return next((key for key, reader in READERS.items() if name.endswith(reader.suffixes)), None)


def cut(path: str, file: str, shard_bytes: int) -> list[Piece] | None:
    """Pieces of about `shard_bytes` of text; None: too large for one piece, `spill` it first."""
    return READERS[format_of(path)].cut(path, file, file_size(path), shard_bytes)


def read(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    """The records of a piece, in order, offsets ascending."""
    return READERS[format_of(piece.file)].read(piece, source, extractor)


def read_rows(piece: Piece, source: Input, extractor: str) -> Iterator[Rows | Record | Bad]:
    """The same, many at once where the format can."""
    reader = READERS[format_of(piece.file)]
    return (reader.read_rows or reader.read)(piece, source, extractor)
