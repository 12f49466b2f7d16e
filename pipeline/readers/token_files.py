"""Token files of Megatron (`.bin`, `.idx` beside it) and datatrove (`.ds`, `.ds.index`): documents
of ids, decoded to text by the tokenizer that made them, `decode` of the input.

What they were made from is often gone; as text they are measured, deduplicated and tokenized like
anything else. Special tokens are left out. A document's offset is its number in the file.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from pipeline.ranges import open_file
from pipeline.readers import Bad, Piece, Record, pieces_of, place_of
from pipeline.readers.files import file_size
from pipeline.settings import Input

MARK = b"MMIDIDX\x00\x00"
HEAD = struct.Struct("<QBQQ")  # version, type of ids, sequences, borders of documents
TYPES = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}  # of Megatron's ids
READ_IDS = 1 << 22  # at once, but for a longer document


def cut(path: str, file: str, size: int, shard_bytes: int) -> list[Piece]:
    """Ranges of documents; a file without a readable index is one piece, a reject."""
    try:
        ends, dtype = _index(path)
    except ValueError:
        return [Piece(path, file, num_bytes=size)] if size else []
    lengths = np.diff(ends, prepend=0) * dtype.itemsize
    return pieces_of(path, file, lengths.tolist(), shard_bytes)


def read(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    """Documents of the piece, offset = number of the document in the file."""
    del extractor
    assert source.decode is not None, "inputs.py asks for it"
    try:
        ends, dtype = _index(piece.path)
    except ValueError as error:
        yield Bad(place_of(piece), 0, "bad_index", f"{piece.file}: {error}")
        return
    tokenizer = _tokenizer(source.decode)
    known = np.zeros(max(tokenizer.get_vocab().values()) + 1, bool)  # ids may have holes
    known[list(tokenizer.get_vocab().values())] = True
    numbers = range(len(ends))[piece.begin : piece.end]
    with open_file(piece.path) as stream:
        for number, ids in _documents(stream, ends, dtype, numbers):
            inside = (ids >= 0) & (ids < len(known))
            bad = ids[~(inside & known[np.where(inside, ids, 0)])]
            if len(bad):
                detail = f"token id {bad[0]}, which {source.decode} does not have"
                yield Bad(number, ids.nbytes, "bad_token", detail)
            else:
                yield Record(number, ids.nbytes, tokenizer.decode(ids.tolist()))


def _documents(
    stream: Any, ends: np.ndarray, dtype: np.dtype[Any], numbers: range
) -> Iterator[tuple[int, np.ndarray]]:
    begins = np.append(0, ends)
    while numbers:
        first = int(begins[numbers[0]])
        stop = int(np.searchsorted(ends, first + READ_IDS, side="right"))
        some, numbers = _split(numbers, max(stop, numbers[0] + 1))
        last = int(ends[some[-1]])
        stream.seek(first * dtype.itemsize)
        ids = np.frombuffer(stream.read((last - first) * dtype.itemsize), dtype)
        for number in some:
            yield number, ids[begins[number] - first : ends[number] - first]


def _split(numbers: range, stop: int) -> tuple[range, range]:
    at = min(stop, numbers.stop)
    return range(numbers.start, at), range(at, numbers.stop)


def _index(path: str) -> tuple[np.ndarray, np.dtype[Any]]:
    """Where each document ends, in ids, and their type.

    Raises:
        ValueError: there is no index, or not of this file.
    """
    size = file_size(path)
    if path.endswith(".ds"):
        ends = np.frombuffer(_whole(path + ".index"), "<u8").astype(np.int64)
        dtypes = [np.dtype(name) for name in ("<u2", "<u4")]
    else:
        ends, dtypes = _of_megatron(_whole(path.removesuffix(".bin") + ".idx"))
    total = int(ends[-1]) if len(ends) else 0
    for dtype in dtypes:
        if total * dtype.itemsize == size:
            return ends, dtype
    raise ValueError(f"the index ends at {total:,} ids, the file has {size:,} bytes")


def _of_megatron(index: bytes) -> tuple[np.ndarray, list[np.dtype[Any]]]:
    begin = len(MARK) + HEAD.size
    if index[: len(MARK)] != MARK or len(index) < begin:
        raise ValueError("the .idx beside it is no index of Megatron")
    _, code, num, borders = HEAD.unpack(index[len(MARK) : begin])
    if code not in TYPES or len(index) < begin + 12 * num + 8 * borders:
        raise ValueError(f"the .idx beside it is damaged: {len(index):,} bytes, {num:,} sequences")
    ends = np.cumsum(np.frombuffer(index, "<i4", num, begin), dtype=np.int64)
    of = np.frombuffer(index, "<i8", borders, begin + 12 * num)  # first sequence of each document
    return np.append(0, ends)[of[1:]], [np.dtype(TYPES[code])]


def _whole(path: str) -> bytes:
    try:
        with open_file(path) as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        raise ValueError(f"no {path} beside it, which says where its documents end") from None


@functools.lru_cache(maxsize=2)
def _tokenizer(path: str) -> Tokenizer:
    assert Path(path).exists(), path  # settings.py looked
    return Tokenizer.from_file(path)
