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


class Rows(NamedTuple):
    """The windows of a record batch."""

    tokens: np.ndarray  # [rows, L + 1] uint16 or uint32
    offsets: np.ndarray  # [rows + 1]: where in `starts` and `names` a window begins
    starts: np.ndarray  # int32
    names: pa.Array  # ids of documents
    ids: np.ndarray  # the same as V16


class Part:
    """A packed part.

    Args:
        forgotten: ids of the documents that are masked in its folder.
    """

    def __init__(self, path: Path, forgotten: frozenset[bytes] = frozenset()) -> None:
        self.forgotten = forgotten
        self._reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self._batches: list[Rows | None] = [None] * self._reader.num_record_batches
        # of each batch but the last
        self._rows = len(self._batch(0).tokens) if self._batches else 1

    def row(self, window: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of a window: its token ids, where its documents begin, and their ids."""
        number, row = divmod(window, self._rows)
        rows = self._batches[number] or self._batch(number)
        begin, end = rows.offsets[row], rows.offsets[row + 1]
        return rows.tokens[row], rows.starts[begin:end], rows.ids[begin:end]

    def holders(self, documents: pa.Array) -> list[int]:
        """Windows that hold one of these documents, for each time that they hold one."""
        found: list[int] = []
        for number in range(len(self._batches)):
            rows = self._batch(number)
            (hits,) = np.nonzero(np.asarray(pc.is_in(rows.names, value_set=documents)))
            inside = np.searchsorted(rows.offsets, hits, side="right") - 1
            found += (inside + number * self._rows).tolist()
        return found

    def _batch(self, number: int) -> Rows:
        batch = self._reader.get_batch(number)
        starts, names = batch.column("starts"), batch.column("documents").values
        rows = Rows(
            tokens=batch.column("ids").values.to_numpy().reshape(batch.num_rows, -1),
            offsets=starts.offsets.to_numpy(),
            starts=starts.values.to_numpy(),
            names=names,
            ids=_hashes(names),
        )
        self._batches[number] = rows
        return rows


def _hashes(values: pa.Array) -> np.ndarray:
    """An array of schema.HASH as V16, without a copy."""
    raw = np.frombuffer(values.buffers()[1], "V16")
    return raw[values.offset : values.offset + len(values)]
