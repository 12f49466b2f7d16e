"""The visible table of input formats. A new one: a file with `cut` and `read`, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipeline.readers import Bad, Piece, Record, document, jsonl, parquet, warc
from pipeline.readers.files import file_size
from pipeline.settings import Input


@dataclass(frozen=True)
class Reader:
    suffixes: tuple[str, ...]
    cut: Callable[[str, str, int, int], list[Piece] | None]
    read: Callable[[Piece, Input, str], Iterator[Record | Bad]]


READERS: dict[str, Reader] = {
    "jsonl": Reader((".jsonl", ".ndjson", ".json"), jsonl.cut, jsonl.read),
    "parquet": Reader((".parquet",), parquet.cut, parquet.read),
    "warc": Reader((".warc", ".wet"), warc.cut, warc.read),
    "text": Reader((".txt", ".text", ".md"), document.cut, document.read_text),
    "html": Reader((".html", ".htm", ".xhtml"), document.cut, document.read_html),
}

COMPRESSED = (".gz", ".zst", ".zstd", ".bz2", ".xz")  # looked through; the bytes say which it is


def format_of(path: str) -> str:
    """The key of READERS for a file, by its suffix.

    Raises:
        ValueError: no format has this suffix.
    """
    name = path.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    for key, reader in READERS.items():
        if name.endswith(reader.suffixes):
            return key
    known = ", ".join(suffix for reader in READERS.values() for suffix in reader.suffixes)
    raise ValueError(
        f"{path}: no reader for this suffix; known: {known}, each also with {', '.join(COMPRESSED)}"
    )


def cut(path: str, file: str, shard_bytes: int) -> list[Piece] | None:
    """Pieces of about `shard_bytes` of text; None: too large for one piece, `spill` it first."""
    return READERS[format_of(path)].cut(path, file, file_size(path), shard_bytes)


def read(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    """The records of a piece, in order, offsets ascending."""
    return READERS[format_of(piece.file)].read(piece, source, extractor)
