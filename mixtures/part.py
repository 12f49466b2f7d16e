"""One packed part, memory-mapped: what packing.py wrote, as numpy views.

Record batches are looked at when one of their windows is asked for, so opening a part costs the
same whatever its length.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Row(NamedTuple):
    """A window; what stands in it as arrays of equal length."""

    tokens: np.ndarray  # [L + 1] uint16 or uint32
    starts: np.ndarray  # int32, ascending; the first is 0
    ids: np.ndarray  # V16 of each document; PADDED at the end of a window that is not full
    follows: np.ndarray | None  # bool: it is seen as one with the document before; None: none is


class Rows(NamedTuple):
    """The windows of a record batch, as they were packed."""

    tokens: np.ndarray  # [rows, packed length + 1] uint16 or uint32
    offsets: np.ndarray  # [rows + 1]: where in `starts` and `names` a window begins
    starts: np.ndarray  # int32
    names: pa.Array  # ids of documents
    ids: np.ndarray  # the same as V16
    follows: np.ndarray | None


class Part:
    """A packed part.

    Args:
        length: of the windows that are read, which divides the packed one: they are stretches of
            packed windows. None: as packed.
        forgotten: ids of the documents that are masked in its folder.
    """

    def __init__(
        self, path: Path, length: int | None = None, forgotten: frozenset[bytes] = frozenset()
    ) -> None:
        self.forgotten = forgotten
        self._reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self._grouped = "follows" in self._reader.schema.names
        packed = self._reader.schema.field("ids").type.list_size - 1
        self._length = length or packed
        self._pieces, rest = divmod(packed, self._length)
        assert not rest, f"{path}: windows of {packed} tokens, not whole ones of {length}"
        self._batches: list[Rows | None] = [None] * self._reader.num_record_batches
        # of each batch but the last
        self._rows = len(self._batch(0).tokens) if self._batches else 1

    def row(self, window: int) -> Row:
        window, piece = divmod(window, self._pieces)
        number, row = divmod(window, self._rows)
        rows = self._batches[number] or self._batch(number)
        first, last = rows.offsets[row], rows.offsets[row + 1]
        tokens, starts = rows.tokens[row], rows.starts[first:last]
        if self._pieces > 1:
            begin = piece * self._length
            end = begin + self._length  # where its last id is, the first of the next one
            inner, outer = starts.searchsorted([begin, end], side="right").tolist()
            starts = np.maximum(starts[inner - 1 : outer] - begin, 0)
            first, last = first + inner - 1, first + outer
            tokens = tokens[begin : end + 1]
        follows = None if rows.follows is None else rows.follows[first:last]
        return Row(tokens, starts, rows.ids[first:last], follows)

    def holders(self, documents: pa.Array) -> list[int]:
        """Windows that hold one of these documents, for each time that they hold one."""
        found: list[int] = []
        for number in range(len(self._batches)):
            rows = self._batch(number)
            (hits,) = np.nonzero(np.asarray(pc.is_in(rows.names, value_set=documents)))
            inside = np.searchsorted(rows.offsets, hits, side="right") - 1
            last = rows.offsets[inside + 1] - 1
            ends = rows.starts[np.minimum(hits + 1, last)]
            ends = np.where(hits == last, self._length * self._pieces + 1, ends)
            # a window has the first id of the next one too
            first = np.maximum(rows.starts[hits] - 1, 0) // self._length
            end = np.minimum((ends - 1) // self._length + 1, self._pieces)
            windows = (inside + number * self._rows) * self._pieces
            for window, begin, stop in zip(windows, first, end, strict=True):
                found += range(int(window + begin), int(window + stop))
        return found

    def _batch(self, number: int) -> Rows:
        batch = self._reader.get_batch(number)
        starts, names = batch.column("starts"), batch.column("documents").values
        follows = batch.column("follows").values if self._grouped else None
        rows = Rows(
            tokens=batch.column("ids").values.to_numpy().reshape(batch.num_rows, -1),
            offsets=starts.offsets.to_numpy(),
            starts=starts.values.to_numpy(),
            names=names,
            ids=_hashes(names),
            follows=None if follows is None else follows.to_numpy(zero_copy_only=False),
        )
        self._batches[number] = rows
        return rows


def _hashes(values: pa.Array) -> np.ndarray:
    """An array of schema.HASH as V16, without a copy."""
    raw = np.frombuffer(values.buffers()[1], "V16")
    return raw[values.offset : values.offset + len(values)]
