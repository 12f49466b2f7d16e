"""Parts of indexes beside those of corpora, for the joins of near copies (linked.py)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dedup.sketches import num_words
from pipeline import schema
from pipeline.copy_index import Index
from pipeline.files import part_name
from pipeline.tables import read_columns, write_columns
from pipeline.transforms import near


def groups_of(
    indexes: Sequence[Index], first: int
) -> tuple[list[tuple[Index, int, range]], list[tuple[int, Index, int]]]:
    """Of each group of parts that stand in an index its number there and their numbers among all;
    and all such parts, by their number among all and in the index."""
    groups, parts = [], []
    for index in indexes:
        for number, group in enumerate(index.groups):
            groups.append((index, number, range(first, first + group.parts)))
            parts += [(first + n, index, group.first + n) for n in range(group.parts)]
            first += group.parts
    return groups, parts


def unpack(at: Path, numbered: tuple[int, Index, int]) -> None:
    """Keys and sketches of a part of an index, as `prepare` keeps them; the rest by a link."""
    number, index, part = numbered
    keys = pq.read_table(index.folder / "keys" / part_name(part)).combine_chunks()
    documents = index.folder / "documents" / part_name(part)
    sketch = pq.read_table(documents, columns=["sketch"])["sketch"]
    words = num_words(index.near["permutations"])
    bits = np.zeros((len(sketch), 8 * words), np.uint8)
    there = sketch.drop_null().combine_chunks()
    bits[np.asarray(sketch.is_valid())] = np.frombuffer(
        there.cast(pa.binary(8 * words)).buffers()[1] or b"", np.uint8
    ).reshape(-1, 8 * words)
    keys_path, sketches_path, _ = near.sign_outputs(at, number)
    write_columns(keys_path, schema.BAND_KEYS, [column.to_numpy() for column in keys.columns])
    write_columns(sketches_path, schema.SKETCHES, [bits.view("<u8").reshape(-1)])
    link = near.indexed_path(at, number)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(documents.resolve())


def plant(path: Path, index: Index, group: int, parts: range) -> None:
    """The forest of a group, under the numbers of its parts among all."""
    edges = pq.read_table(index.folder / "forest" / part_name(group)).combine_chunks()
    shift = np.uint64(parts.start << 32)
    write_columns(path, schema.EDGES, [column.to_numpy() + shift for column in edges.columns])


def leave_out_known(at: Path, num_parts: int) -> None:
    """Components without a document of the first parts, those of the corpora, tell nothing new."""
    path = near.components_output(at)
    docs, labels = read_columns(path, schema.COMPONENTS)
    new = np.unique(labels[docs < np.uint64(num_parts << 32)])
    kept = np.isin(labels, new)
    write_columns(path, schema.COMPONENTS, [docs[kept], labels[kept]])
