"""The order of training data is a function of (seed, position); this file reads it from disk.

`position` is the global window number of a run. There is no other state, so resume is O(1) at any
step, and any number of ranks, each asking for its own positions, sees the same global sequence.
numpy only: a trainer wraps the arrays, and this module knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mixtures.continuing import why_not
from mixtures.order import epoch_order
from mixtures.packed import PADDED, forgotten
from mixtures.part import Part, Row
from mixtures.permutation import derive_seed
from mixtures.plan import Plan, PlannedSource
from pipeline import schema
from pipeline.files import part_name

MAX_OPEN_PARTS = 256  # maps, not memory; far below the usual limit of 1,024 open files


# Positions resolved together: a call costs 0.3 ms whatever their number, and 512 fill 16 kB. A
# look-ahead, not an index: any block is computed from its number alone.
BLOCK = 512


class StateError(ValueError):
    """A loader state that belongs to another plan."""


@dataclass(frozen=True)
class Batch:
    """Windows of a run. B windows of L = sequence_length."""

    tokens: np.ndarray  # [B, L + 1] int64; inputs are [:, :-1], targets [:, 1:]
    documents: np.ndarray  # [B, L + 1] int32: 0, 1, 2 ... within the window; it rises at borders
    ids: tuple[np.ndarray, ...]  # of each window: V16 [num_documents], ids by document index


@dataclass(frozen=True)
class Place:
    """Where windows stand: arrays of equal length."""

    source: np.ndarray  # index in plan.sources
    epoch: np.ndarray
    part: np.ndarray
    window: np.ndarray  # in that part


class Loader:
    """Reads the windows of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._schedule = plan.schedule
        opened = partial(open_part, length=plan.sequence_length)
        self._part = lru_cache(maxsize=MAX_OPEN_PARTS)(opened)
        self._block = lru_cache(maxsize=4)(self._locate)

    def __len__(self) -> int:
        return self.plan.num_windows

    def state(self, position: int) -> dict[str, Any]:
        """What a checkpoint keeps: the next position, and which order it belongs to."""
        return {"position": position, "fingerprint": self.plan.fingerprint}

    def resume(self, state: dict[str, Any], before: Plan | None = None) -> int:
        """The position of a state.

        Args:
            before: the plan that the state belongs to, where it may be another one that has the
                same windows up to there.

        Raises:
            StateError: it is a state of another plan.
        """
        position, saved = int(state["position"]), state["fingerprint"]
        if saved == self.plan.fingerprint:
            return position
        if before is None or before.fingerprint != saved:
            raise StateError(
                f"the saved loader state belongs to plan {saved}, this run has plan "
                f"{self.plan.fingerprint}: sources, selection, weights, seed, tokenizer or length "
                "differ, and its position means nothing here; restore the mixture of that run, or "
                "start a new run"
            )
        why = why_not(before, self.plan, position)
        if why is not None:
            raise StateError(f"the saved loader state belongs to plan {saved}: {why}")
        return position

    def window(self, position: int) -> Batch:
        return self.batch(position, 1)

    def batch(self, position: int, count: int) -> Batch:
        """The windows position .. position + count - 1.

        Raises:
            ValueError: a token id beyond the vocabulary; names the source and the remedy.
        """
        shape = (count, self.plan.sequence_length + 1)
        tokens, borders = np.empty(shape, np.int64), np.zeros(shape, np.int32)
        ids = []
        for at, (_, opened, window) in enumerate(self._rows(position, count)):
            row = opened.row(window)
            tokens[at] = row.tokens
            ids.append(_mark(row, opened.forgotten, borders[at]))
        if count and int(tokens.max()) >= self.plan.vocab_size:
            raise ValueError(self._damaged(position, tokens))
        return Batch(tokens, np.cumsum(borders, axis=1, dtype=np.int32), tuple(ids))

    def _damaged(self, position: int, tokens: np.ndarray) -> str:
        """What to say of the first window that holds an id beyond the vocabulary. On a device it
        would be an assertion far from its cause, or an IndexError."""
        vocab_size = self.plan.vocab_size
        at = int(np.flatnonzero((tokens >= vocab_size).any(axis=1))[0])
        places = self.places(position + at, 1)
        source, part = self.plan.sources[int(places.source[0])], int(places.part[0])
        return (
            f"{Path(source.folder) / part_name(part, 'arrow')} is damaged (the disk, or another "
            f"program?): window {int(places.window[0])} holds token id {int(tokens[at].max())}, "
            f"but the tokenizer has {vocab_size} tokens; delete the folder {source.folder}, and it "
            "will be packed again"
        )

    def _rows(self, position: int, count: int) -> Iterator[tuple[PlannedSource, Part, int]]:
        """The source of each window, the packed part that holds it, and its number there."""
        places = self.places(position, count)
        columns = (places.source.tolist(), places.part.tolist(), places.window.tolist())
        for index, part, window in zip(*columns, strict=True):
            source = self.plan.sources[index]
            yield source, self._part(source.folder, part), window

    def places(self, position: int, count: int) -> Place:
        """Where the windows position .. position + count - 1 stand on disk."""
        end = position + count
        first, last = position // BLOCK, max(position, end - 1) // BLOCK
        if position < 0 or end > self.plan.num_windows:
            raise IndexError(
                f"windows {position} to {end - 1}: the plan has {self.plan.num_windows} windows "
                f"({self.plan.tokens:,} tokens); make it again with more `--tokens`"
            )
        blocks = [self._block(number) for number in range(first, last + 1)]
        begin = position - first * BLOCK
        return Place(*np.concatenate(blocks, axis=1)[:, begin : begin + count])

    def _locate(self, block: int) -> np.ndarray:
        """Places of a block of positions: int64 [4, BLOCK], in the order of `Place`."""
        source, number = self._schedule.locate(np.arange(BLOCK) + block * BLOCK)
        epoch, part, window = (np.empty_like(number) for _ in range(3))
        for index in np.unique(source):
            planned, here = self.plan.sources[index], source == index
            epoch[here], inside = np.divmod(number[here], planned.num_windows)
            for turn in np.unique(epoch[here]):
                now = here & (epoch == turn)
                seed = derive_seed(self.plan.seed, planned.selection, int(turn))
                part[now], window[now] = epoch_order(
                    inside[epoch[here] == turn], planned.windows, planned.parts_per_group, seed
                )
        return np.stack([source, epoch, part, window])

    def documents_at(self, position: int, count: int) -> list[tuple[str, tuple[str, ...]]]:
        """(source, hex ids of documents) of each window: what a training step saw."""
        seen = []
        for source, opened, window in self._rows(position, count):
            names = [name.tobytes() for name in opened.row(window).ids]
            seen.append((source.name, tuple(name.hex() for name in names if name != PADDED)))
        return seen

    def positions_of(self, *documents: str, selections: Container[str] | None = None) -> list[int]:
        """Positions whose window holds one of these documents (hex ids), of `selections` or of all:
        a scan of the plan."""
        wanted = pa.array(list(map(bytes.fromhex, documents)), schema.HASH)
        holders = {
            (index, part, window)
            for index, source in enumerate(self.plan.sources)
            if selections is None or source.selection in selections
            for part in range(len(source.windows))
            for window in self._part(source.folder, part).holders(wanted)
        }
        found: list[int] = []
        for first, places in self._chunks():
            keys = zip(places.source, places.part, places.window, strict=True)
            found += [first + at for at, key in enumerate(keys) if key in holders]
        return found

    def _chunks(self, size: int = 65_536) -> Iterator[tuple[int, Place]]:
        for first in range(0, len(self), size):
            yield first, self.places(first, min(size, len(self) - first))


def _mark(row: Row, forgotten: frozenset[bytes], borders: np.ndarray) -> np.ndarray:
    """Set the borders of a window to 1 where a document begins that does not see what is before it.

    Each token of padding and of a forgotten document is alone, so that no loss counts and nothing
    looks at it. Returns the id of what begins at 0 and at each border.
    """
    starts, names = row.starts, row.ids
    borders[starts[1:]] = 1
    gone = np.array([name.tobytes() in forgotten for name in names] if forgotten else [], bool)
    is_padded = names[-1].tobytes() == PADDED
    if not gone.any() and not is_padded and row.follows is None:
        return names
    if row.follows is not None:
        borders[starts[row.follows]] = 0
    if not len(gone):
        gone = np.zeros(len(names), bool)
    gone[-1] |= is_padded
    ends = np.append(starts[1:], len(borders))
    for start, end in zip(starts[gone].tolist(), ends[gone].tolist(), strict=True):
        borders[start : end + 1] = 1  # also what is behind it
    borders[0] = 0
    at = np.append(0, np.flatnonzero(borders))
    named: np.ndarray = names[np.searchsorted(starts, at, side="right") - 1]
    return named


def open_part(folder: str, part: int, length: int | None = None) -> Part:
    return Part(Path(folder) / part_name(part, "arrow"), length, forgotten(Path(folder)))
