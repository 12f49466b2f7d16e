"""One packed part, memory-mapped: what packing.py wrote, as numpy views.

A record batch is looked at when one of its windows is asked for first, so opening a part costs the
same whatever its length. Of it five numbers are kept, where its columns stand in the file: windows
come in random order from all parts, so all record batches of a corpus are soon known, and arrays of
each (2 kB, and 20 us to make a window from) would be more than the ids that a batch takes.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mixtures.packed import PADDED

_ID = np.dtype("V16")


class Row(NamedTuple):
    """A window; what stands in it as arrays of equal length."""

    tokens: np.ndarray  # [L + 1] uint16 or uint32
    starts: np.ndarray  # int32, ascending; the first is 0
    ids: np.ndarray  # V16 of each document; PADDED at the end of a window that is not full
    follows: np.ndarray | None  # bool: it is seen as one with the document before; None: none is
    is_padded: bool  # its end is padding


class Part:
    """A packed part. It holds a mapping of the file, and no file descriptor.

    Args:
        length: of the windows that are read, which divides the packed one: they are stretches of
            packed windows. None: as packed.
        forgotten: ids of the documents that are masked in its folder.
    """

    def __init__(
        self, path: Path, length: int | None = None, forgotten: frozenset[bytes] = frozenset()
    ) -> None:
        self.forgotten = forgotten
        with pa.memory_map(str(path)) as file:
            mapped = file.read_buffer()  # which keeps the mapping when the file is closed
        self._reader = pa.ipc.open_file(mapped)
        self._grouped = "follows" in self._reader.schema.names
        ids = self._reader.schema.field("ids").type
        self._width = ids.list_size
        self._length = length or self._width - 1
        self._pieces, rest = divmod(self._width - 1, self._length)
        assert not rest, f"{path}: windows of {self._width - 1} tokens, not whole ones of {length}"
        self._address = mapped.address
        self._bytes = np.frombuffer(mapped, np.uint8)
        self._mapped = self._bytes.data
        self._tokens = _whole(self._bytes, str(ids.value_type))  # uint16 or uint32
        self._integers = _whole(self._bytes, "int32")
        self._offsets = self._integers.data  # gives an int in a third of the time
        # of each record batch: where its columns begin, see _find; zeros: not known yet
        self._num_batches = self._reader.num_record_batches
        self._places = np.zeros(5 * self._num_batches, np.int64).data  # ints, as self._offsets
        self._rows = self._reader.get_batch(0).num_rows if self._num_batches else 1

    def tokens(self, window: int) -> np.ndarray:
        """The ids of a window alone: [L + 1] uint16 or uint32. Hundred thousands a second are asked
        for: each numpy call here is one too many."""
        inside = 0
        if self._pieces > 1:
            window, piece = divmod(window, self._pieces)
            inside = piece * self._length
        number = window // self._rows
        at = self._places[5 * number] or self._find(number)[0]
        at += (window - number * self._rows) * self._width + inside
        return self._tokens[at : at + self._length + 1]

    def row(self, window: int) -> Row:
        """A window, and what stands in it."""
        tokens = self.tokens(window)  # from here on it is known where its record batch is
        if self._pieces > 1:
            window, piece = divmod(window, self._pieces)
        number = window // self._rows
        row = window - number * self._rows
        _, offsets_at, starts_at, ids_at, follows_at = self._places[5 * number : 5 * number + 5]
        first, last = self._offsets[offsets_at + row], self._offsets[offsets_at + row + 1]
        starts = self._integers[starts_at + first : starts_at + last]
        if self._pieces > 1:
            begin = piece * self._length
            end = begin + self._length  # where its last id is, the first of the next one
            inner, outer = starts.searchsorted([begin, end], side="right").tolist()
            starts = np.maximum(starts[inner - 1 : outer] - begin, 0)
            first, last = first + inner - 1, first + outer
        return Row(
            tokens,
            starts,
            np.frombuffer(self._mapped, _ID, last - first, ids_at + 16 * first),
            self._bits(follows_at, first, last) if follows_at else None,
            self._mapped[ids_at + 16 * last - 16 : ids_at + 16 * last] == PADDED,
        )

    def _bits(self, at: int, first: int, last: int) -> np.ndarray:
        """bool: bits first .. last - 1 of the bitmap at a byte of the file."""
        packed = self._bytes[at + first // 8 : at + (last + 7) // 8]
        begin = first % 8
        return np.unpackbits(packed, bitorder="little")[begin : begin + last - first].view(bool)

    def _find(self, number: int) -> list[int]:
        """Where in the file the columns of a record batch are: ids (counted in ids), offsets of
        the lists and starts (in int32), documents, follows (in bytes)."""
        batch = self._reader.get_batch(number)
        starts = batch.column("starts")
        columns = [
            (batch.column("ids").values.buffers()[1], self._tokens.itemsize),
            (starts.buffers()[1], 4),
            (starts.values.buffers()[1], 4),
            (batch.column("documents").values.buffers()[1], 1),
        ]
        if self._grouped:
            columns.append((batch.column("follows").values.buffers()[1], 1))
        found = [0] * 5
        for at, (buffer, item_bytes) in enumerate(columns):
            found[at], rest = divmod(buffer.address - self._address, item_bytes)
            assert not rest, (number, at, found[at], rest)
            assert 0 < found[at] < len(self._bytes), (number, at, found[at])
        for at in (1, 2, 3, 4, 0):  # 0 last: another thread then reads them all
            self._places[5 * number + at] = found[at]
        return found

    def holders(self, documents: pa.Array) -> list[int]:
        """Windows that hold one of these documents, for each time that they hold one."""
        found: list[int] = []
        for number in range(self._num_batches):
            batch = self._reader.get_batch(number)
            lists = batch.column("starts")
            offsets, starts = lists.offsets.to_numpy(), lists.values.to_numpy()
            names = batch.column("documents").values
            (hits,) = np.nonzero(np.asarray(pc.is_in(names, value_set=documents)))
            inside = np.searchsorted(offsets, hits, side="right") - 1
            last = offsets[inside + 1] - 1
            ends = starts[np.minimum(hits + 1, last)]
            ends = np.where(hits == last, self._length * self._pieces + 1, ends)
            # a window has the first id of the next one too
            first = np.maximum(starts[hits] - 1, 0) // self._length
            end = np.minimum((ends - 1) // self._length + 1, self._pieces)
            windows = (inside + number * self._rows) * self._pieces
            for window, begin, stop in zip(windows, first, end, strict=True):
                found += range(int(window + begin), int(window + stop))
        return found


def _whole(raw: np.ndarray, dtype: str) -> np.ndarray:
    """Bytes of a file as whole items, from its beginning."""
    item_bytes = np.dtype(dtype).itemsize
    items: np.ndarray = raw[: len(raw) // item_bytes * item_bytes].view(dtype)
    return items
