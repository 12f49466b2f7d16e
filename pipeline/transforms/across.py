"""Lines and paragraphs that stand in several documents: where the records of all parts meet.

A partition of the keys at a time is in memory, of a key MOST contents at the most
(dedup/distinct.py); the answer is written part by part. Counted are contents: a text that stands a
thousand times is one document. Of a repeated line or paragraph the documents of the lowest
content_hash keep what stands first in them: as the lowest of all parts it depends neither on shards
nor on the order of inputs.

The answer is one file a partition with a batch for each part that has some, in order of parts, so
that each part reads its own.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dedup import distinct
from dedup.bands import partition_slice
from pipeline import schema
from pipeline.files import part_name, replacing
from pipeline.tables import read_columns
from pipeline.transforms import pieces

if TYPE_CHECKING:
    from pipeline.dedup_settings import Across

Numbers = npt.NDArray[np.uint64]


def output(root: Path, partition: int) -> Path:
    return root / "joins" / "across" / "found" / part_name(partition, "arrow")


def join(root: Path, across: Across, parts: list[int], partition: int, num: int) -> dict[str, Any]:
    """Write the records of this partition of `num` whose key stands in enough documents: their
    place (part << 32 | record), in how many, and whether this one is kept."""
    parts = sorted(parts)
    counted = distinct.count(
        distinct.Records(keys.high.copy(), keys.low.copy(), contents)  # lets go of the file
        for keys, contents, _ in _slices(root, parts, partition, num)
    )
    enough = counted.num >= _least(across)[pieces.unit_of(counted.low)]
    counted = distinct.Counted(*(column[enough] for column in counted))
    with (
        replacing(output(root, partition)) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, schema.PIECES_FOUND) as writer,
    ):
        num_found = 0
        for columns in _found(root, parts, partition, num, counted):
            arrays = [pa.array(column) for column in columns]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema.PIECES_FOUND))
            num_found += len(columns[0])
    return {"keys": len(counted.num), "found": num_found}


def found_of(root: Path, partition: int, part: int) -> list[npt.NDArray[Any]]:
    """The columns of schema.PIECES_FOUND that a part has in the answer of a partition."""
    with pa.memory_map(str(output(root, partition))) as source:
        reader = pa.ipc.open_file(source)

        def part_of(number: int) -> int:
            return int(reader.get_batch(number)["piece"][0].as_py() >> 32)

        numbers = range(reader.num_record_batches)
        at = bisect.bisect_left(numbers, part, key=part_of)
        if at == len(numbers) or part_of(at) != part:
            return [pa.array([], field.type).to_numpy() for field in schema.PIECES_FOUND]
        return [column.to_numpy().copy() for column in reader.get_batch(at).columns]


def _found(
    root: Path, parts: list[int], partition: int, num: int, counted: distinct.Counted
) -> Iterator[list[npt.NDArray[Any]]]:
    """Of each part that has some."""
    for part, (keys, contents, first) in zip(
        parts, _slices(root, parts, partition, num), strict=True
    ):
        at = _places(counted, keys)
        (hits,) = np.nonzero(at >= 0)
        at = at[hits]
        records = (hits + first).astype(np.uint64) | np.uint64(part << 32)
        again = np.zeros(len(keys.row), np.bool_)  # in the same document
        again[1:] = keys.row[1:] == keys.row[:-1]
        again[1:] &= (keys.high[1:] == keys.high[:-1]) & (keys.low[1:] == keys.low[:-1])
        kept = (counted.lowest[at] == contents[hits]) & ~again[hits]
        kept &= pieces.unit_of(keys.low[hits]) > 1  # of a site no copy stays
        num_documents = np.minimum(counted.num[at], 0xFFFFFFFF).astype(np.uint32)
        if len(records):
            yield [records, num_documents, kept.astype(np.uint8)]


def _least(across: Across) -> Numbers:
    """Of each of pieces.UNITS the documents that are enough; of a site those of its lines."""
    least = {name: unit.documents for name, unit in across.units.items()}
    least["site"] = least.get("site_lines", 2)
    return np.array([least.get(name, 2) for name in pieces.UNITS], np.uint64)


def _slices(
    root: Path, parts: list[int], partition: int, num: int
) -> Iterator[tuple[pieces.Records, Numbers, int]]:
    """Of each part the records of a partition, the content of each, and the number of the first."""
    for part in parts:
        pieces_path, documents_path = pieces.outputs(root, part)
        records = pieces.Records(*read_columns(pieces_path, schema.PIECES))
        cut = partition_slice(records.high, partition, num)
        mine = pieces.Records(*(column[cut] for column in records))
        contents, _ = read_columns(documents_path, schema.PIECE_DOCUMENTS)
        yield mine, contents[mine.row], cut.start


def _places(counted: distinct.Counted, keys: pieces.Records) -> npt.NDArray[np.int64]:
    """Where each key stands among those counted, or -1."""
    at = np.searchsorted(counted.high, keys.high)
    found = np.full(len(at), -1)
    looked = np.arange(len(at))
    while len(looked):  # once; more often where the upper halves of two keys are equal
        looked = looked[at[looked] < len(counted.high)]
        looked = looked[counted.high[at[looked]] == keys.high[looked]]
        hit = counted.low[at[looked]] == keys.low[looked]
        found[looked[hit]] = at[looked[hit]]
        looked = looked[~hit]
        at[looked] += 1
    return found
