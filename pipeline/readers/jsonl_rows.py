"""JSON Lines as columns: blocks of lines through one kernel, where `jsonl` makes an object a line.

Lines that the kernel is not sure of, and texts that normalization may change, are read as `jsonl`
reads them. A document of 140 bytes costs ingest 6 us in all, before 11.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters import normalize
from kernels import json_lines
from kernels.json_lines import Lines
from kernels.json_strings import PADDING
from pipeline.readers import Bad, Piece, Record, Rows, jsonl
from pipeline.readers.jsonl import Line
from pipeline.readers.rows import domain
from pipeline.settings import Input

BLOCK_BYTES = 1_000_000  # looked at together: they stay in the cache of a core


def read_rows(piece: Piece, source: Input, extractor: str) -> Iterator[Rows | Record | Bad]:
    """What `jsonl.read` gives, in the same order."""
    others = (source.id, source.url, *source.keep)
    if source.text in others or len(others) >= json_lines.MAX_NAMES:  # a text goes to one place
        yield from jsonl.read(piece, source, extractor)
        return
    stream, base, end = jsonl.stream_from(piece)
    for block in blocks(stream, base, end, skip=piece.begin > 0):
        if isinstance(block, Line):
            item = jsonl.parse(block, source)
            if item is not None:
                yield item
        else:
            yield rows_of(*block, source)


def blocks(
    stream: Iterator[bytes], offset: int, end: int | None, skip: bool = False
) -> Iterator[tuple[int, bytes] | Line]:
    """The lines that begin before `end`: whole ones in blocks, with the offset of each block; the
    last one, one that is too long and one inside which the stream broke by themselves.

    Args:
        skip: the first line is not wanted.
    """
    held: list[bytes] = []
    size = 0
    fault: Exception | None = None
    done = False
    while not done and size <= jsonl.MAX_LINE_BYTES:
        try:
            chunk = next(stream, None)
        except Exception as error:  # also a disk's: what stands before it comes first
            chunk, fault = None, error
        done = chunk is None
        held.append(chunk or b"")
        size += len(held[-1])
        reached = end is not None and offset + size >= end
        if not done and (b"\n" not in held[-1] or (size < BLOCK_BYTES and not reached)):
            continue
        data = b"".join(held)
        # The last line is that which holds byte `end - 1`.
        last = data.find(b"\n", end - offset - 1) + 1 if end is not None and reached else 0
        cut = last or data.rfind(b"\n") + 1
        held, size = [data[cut:]], len(data) - cut
        begin = data.find(b"\n") + 1 if skip else 0
        skip &= cut == 0
        while begin < cut:  # a chunk that was packed well may be a large one
            stop = data.find(b"\n", min(begin + BLOCK_BYTES, cut) - 1) + 1
            yield offset + begin, data[begin:stop]
            begin = stop
        offset += cut
        if last:
            return
    rest = jsonl.lines(chain(held, _raising(fault), stream), offset, end)
    if skip:
        next(rest, None)
    yield from rest


def _raising(fault: Exception | None) -> Iterator[bytes]:
    if fault is not None:
        raise fault
    yield from ()


def rows_of(offset: int, data: bytes, source: Input) -> Rows:
    """Records of a block of whole lines, `offset` that of its first byte."""
    names = list(dict.fromkeys((source.text, source.id, source.url, *source.keep)))
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    lines: Lines = json_lines.scan(
        np.frombuffer(data + bytes(PADDING), np.uint8),
        len(data),
        np.frombuffer(b"".join(encoded), np.uint8),
        np.cumsum([len(name) for name in encoded]),
    )
    is_row = lines.kinds == json_lines.ROW
    is_row &= normalize.are_plain(lines.texts, lines.text_ends)
    is_row &= lines.ends - lines.begins <= jsonl.MAX_LINE_BYTES  # a block holds a chunk more
    others = []
    for line in np.flatnonzero(~is_row & (lines.kinds != json_lines.BLANK)).tolist():
        begin, end = int(lines.begins[line]), int(lines.ends[line])
        item = jsonl.parse(Line(offset + begin, end - begin, data[begin:end]), source)
        if item is not None:
            others.append(item)
    rows = np.flatnonzero(is_row)
    columns = {
        "offset": pa.array(lines.begins[rows] + offset),
        "text": _column(lines.texts, rows, lines.text_begins, lines.text_ends),
        "num_bytes": pa.array(lines.text_ends[rows] - lines.text_begins[rows]),
        "num_chars": pa.array(lines.text_chars[rows]),
    }
    found = {name: _other(lines, rows, number) for number, name in enumerate(names) if number}
    columns["source_id"] = found[source.id]
    columns |= _addresses(lines, rows, names.index(source.url))
    if source.keep:
        columns["meta"] = _meta({name: found[name] for name in dict.fromkeys(source.keep)})
    return Rows(columns, others)


def _column(
    data: npt.NDArray[np.uint8],
    rows: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    is_null: npt.NDArray[np.bool_] | None = None,
) -> pa.Array:
    """Strings that are known to be UTF-8: Arrow would check each again."""
    offsets, found = json_lines.column(data, rows, begins, ends)
    valid = None if is_null is None else pa.array(~is_null).buffers()[1]
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(found)]
    return pa.Array.from_buffers(pa.string(), len(rows), buffers)


def _other(
    lines: Lines, rows: npt.NDArray[np.int64], number: int, literals: bool = True
) -> pa.Array:
    """The values of a name that is not the text; null where there is none."""
    kinds = lines.other_kinds[rows, number]
    is_null = kinds == json_lines.ABSENT if literals else kinds != json_lines.STRING
    begins, ends = lines.other_begins[:, number], lines.other_ends[:, number]
    return _column(lines.others, rows, begins, ends, is_null)


def _addresses(lines: Lines, rows: npt.NDArray[np.int64], number: int) -> dict[str, pa.Array]:
    found = _other(lines, rows, number, literals=False).to_pylist()
    urls = [url if url and url.strip() else None for url in found]
    hosts = [domain(url) if url else None for url in urls]
    return {"url": pa.array(urls, pa.string()), "domain": pa.array(hosts, pa.string())}


def _meta(found: dict[str, pa.Array]) -> pa.Array:
    """Columns as one of maps, without what is null."""
    valid = np.column_stack([np.asarray(column.is_valid()) for column in found.values()])
    num_rows = len(valid)
    row, field = np.nonzero(valid)
    keys = pa.array(list(found), pa.string()).take(pa.array(field))
    values = pa.concat_arrays(list(found.values())).take(pa.array(field * num_rows + row))
    offsets = np.concatenate([[0], valid.sum(axis=1).cumsum()]).astype(np.int32)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, values)
