"""Input files to records. One format a file; `READERS` in `formats.py` is the visible table.

A reader is two plain functions:

    cut(path, file, size, shard_bytes) -> list[Piece] | None   where to cut, without parsing (cheap)
    read(piece, source, extractor) -> Iterator[Record | Bad]

`cut` returns None for a stream that cannot be entered in the middle and is too large for one piece:
`spill.py` makes shards of it first, at the borders that a third function finds:

    borders(stream, shard_bytes) -> Iterator[bytes | None]   the stream, None where to cut

A fourth, `read_rows`, reads what `read` does faster, as columns.

Every record of the input comes out once, as a `Record` or as a `Bad` with its reason: one bad byte
costs one record, a truncated stream keeps what stands before the cut. A record belongs to the piece
in which its first byte lies. Nothing here loads Beam, and nothing here decides what is kept.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


class RefusedFileError(ValueError):
    """An input file that no run reads, whatever `max_bad_files` says; names it and the way out."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of one input file. `end` None means: to the end of the file.

    The unit of begin/end is the format's own (bytes of the uncompressed stream for JSONL, row
    groups for Parquet, bytes of the file at member or record borders for WARC). `base` is the
    offset in the original uncompressed stream at which `begin` lies, where the two differ: in a
    spilled shard, in a WARC.gz range.
    """

    path: str  # as it can be opened
    file: str  # relative to the fixed part of `files`; stands in ids
    begin: int = 0
    end: int | None = None
    base: int = 0
    num_bytes: int = 0  # of uncompressed text, about: balances shards, no more
    spilled: bool = False  # `path` is a shard of ours
    room: str = ""  # folder for what must be unpacked: the corpus; else the system's
    broken: str = ""  # behind the last spilled shard: why the original stream breaks off here


@dataclass(slots=True)
class Record:
    """One document as it came: decoded, extracted, not yet normalized.

    `text` may hold lone surrogates (JSON escapes such as `\\ud800`); normalization counts them.
    """

    offset: int  # see schema.DOCUMENTS
    num_bytes: int  # of the raw record
    text: str
    fields: dict[str, Any] = field(default_factory=dict)  # further columns of schema.DOCUMENTS


@dataclass(slots=True)
class Bad:
    """One record that cannot become a document: a row of `rejects`."""

    offset: int  # as of a Record; of a whole piece: see `place_of`
    num_bytes: int
    reason: str
    detail: str
    excerpt: str = ""


def place_of(piece: Piece) -> int:
    """Offset of a reject that speaks of a piece and of none of its records: below 0, where no
    record's is, and another for each piece of a file."""
    return -1 - max(piece.begin, piece.base)


@dataclass(slots=True)
class Rows:
    """Many records at once, which came as columns."""

    columns: dict[str, pa.Array]  # of schema.DOCUMENTS, `offset` and those of the text among them
    # Those that need a look: all that normalization may change, and all bad ones. Their offsets lie
    # between those of the columns.
    others: list[Record | Bad]


def pieces_of(path: str, file: str, sizes: list[int], shard_bytes: int) -> list[Piece]:
    """Ranges of the units of a file (row groups, members), of these bytes of text each."""
    pieces: list[Piece] = []
    begin, num_bytes = 0, 0
    for end, size in enumerate(sizes, 1):
        num_bytes += size
        if num_bytes >= shard_bytes or end == len(sizes):
            pieces.append(Piece(path, file, begin, end, num_bytes=num_bytes))
            begin, num_bytes = end, 0
    return pieces


def is_of_disk(error: Exception) -> bool:
    """Whether the disk failed, not the data: then the file fails, and no record is a reject.

    The system's errors have a number, those of decoders have none. EINVAL is a seek to before the
    beginning, which zipfile makes of a broken directory.
    """
    return isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)


def excerpt(raw: bytes | str) -> str:
    """The first 200 characters for a row of `rejects`, undecodable bytes as U+FFFD."""
    if isinstance(raw, str):
        return raw[:200].encode("utf-8", "replace").decode()
    return raw[:800].decode("utf-8", "replace")[:200]
