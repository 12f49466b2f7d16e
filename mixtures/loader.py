"""The order of training data is a function of (seed, position); this file reads it from disk.

`position` is the global window number of a run. There is no other state, so resume is O(1) at any
step, and any number of ranks, each asking for its own positions, sees the same global sequence.
numpy only: a trainer wraps the arrays, and this module knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from mixtures import loader_state
from mixtures.borders import divided, numbered
from mixtures.open_parts import Key, OpenParts
from mixtures.order import epoch_order, group_at
from mixtures.packed import PADDED, remedy
from mixtures.part import Part
from mixtures.permutation import derive_seed
from mixtures.plan import Plan, PlannedSource, parts_read
from mixtures.shard_cache import DamagedShard, ShardCache
from pipeline import schema
from pipeline.files import DAMAGED, part_name
from pipeline.objects import is_url

# Positions resolved together: a call costs 1 ms for 512 and 2 ms for 4,096, which fill 128 kB. A
# look-ahead, not an index: any block is computed from its number alone.
BLOCK = 4_096
KEPT = 512  # positions: how often it is asked which parts of a store are held
NO_IDS = np.zeros(0, "V16")
SOON = 1 << 16  # positions: a source without a window among so many need not be fetched yet


OnDamage = Literal[
    "fail", "skip"
]  # what becomes of windows that cannot be read as they were packed


@dataclass(frozen=True)
class Skipped:
    """A window that could not be read, and that `on_damage: skip` made blank."""

    position: int
    source: str
    part: int
    window: int  # in that part
    why: str


@dataclass(frozen=True)
class Batch:
    """Windows of a run. B windows of L = sequence_length."""

    tokens: np.ndarray  # [B, L + 1] int64; inputs are [:, :-1], targets [:, 1:]
    documents: np.ndarray  # [B, L + 1] int32: 0, 1, 2 ... within the window; it rises at borders
    ids: tuple[np.ndarray, ...]  # of each window: V16 [num_documents], ids by document index
    skipped: tuple[Skipped, ...] = ()  # windows that are blank, for their part is damaged


@dataclass(frozen=True)
class Place:
    """Where windows stand: arrays of equal length."""

    source: np.ndarray  # index in plan.sources
    epoch: np.ndarray
    part: np.ndarray
    window: np.ndarray  # in that part


@dataclass(frozen=True)
class Piece:
    """A document in a window."""

    position: int  # of the window in the run
    source: str
    epoch: int  # of the source, from 0
    part: int  # of the packed selection
    window: int  # of the part
    begin: int  # its tokens in the window: begin .. end - 1
    end: int
    id: str  # hex
    forgotten: bool  # no token of it counts
    tokens: np.ndarray


class Loader:
    """Reads the windows of a plan.

    Args:
        cache: of shards on stores; default: the one of this machine.
        on_damage: of a part whose bytes are not those that were packed, on a store also when it was
            fetched again. `fail` raises. `skip` makes its windows blank: every id is that of the
            end of a document, each a document of its own, so no loss counts; the order of all other
            windows stays. Then local parts are hashed too, when they are opened first.
    """

    def __init__(
        self, plan: Plan, cache: ShardCache | None = None, on_damage: OnDamage = "fail"
    ) -> None:
        self.plan = plan
        self._schedule = plan.schedule
        self._parts = OpenParts(plan.sequence_length, cache, verify=on_damage == "skip")
        self._skips = on_damage == "skip"
        self._broken: dict[tuple[str, int], str] = {}
        self._on_store = [is_url(source.folder) for source in plan.sources]
        self._kept = -1  # of which KEPT positions the parts are held
        self._block = lru_cache(maxsize=4)(self._locate)

    def __len__(self) -> int:
        return self.plan.num_windows

    def state(self, position: int) -> dict[str, Any]:
        """What a checkpoint keeps: the next position, and which order it belongs to."""
        return loader_state.of(self.plan, position)

    def resume(
        self, state: dict[str, Any], before: Plan | None = None, *, allow_other_data: bool = False
    ) -> int:
        """The position of a state.

        Args:
            before: the plan that the state belongs to, where it may be another one that has the
                same windows up to there.
            allow_other_data: go on at that position in this plan, whatever the state belongs to.

        Raises:
            StateError: it is a state of another plan; says what differs.
        """
        return loader_state.position_in(self.plan, state, before, allow_other_data)

    def close(self) -> None:
        """Let go of shards in the cache; a loader that is dropped does so when it is collected."""
        self._parts.close()

    def window(self, position: int) -> Batch:
        return self.batch(position, 1)

    def batch(self, position: int, count: int) -> Batch:
        """The windows position .. position + count - 1.

        Raises:
            ValueError: a token id beyond the vocabulary; names the source and the remedy.
        """
        width = self.plan.sequence_length + 1
        rows, starts, ids, skipped = [], [], [], []
        for at, (source, number, part, window) in enumerate(self._rows(position, count)):
            if part is None:
                why = self._broken[source.folder, number]
                skipped.append(Skipped(position + at, source.name, number, window, why))
                rows.append(np.full(width, self.plan.eos_id or 0))
                begins, names = np.arange(width), np.zeros(width, "V16")
            else:
                row = part.row(window)
                rows.append(row.tokens)
                begins, names = divided(row, part.forgotten)
            starts.append(begins)
            ids.append(names)
        if not rows:
            return Batch(np.empty((0, width), np.int64), np.empty((0, width), np.int32), ())
        packed = np.concatenate(rows)
        tokens = packed.astype(np.int64).reshape(count, width)
        if int(packed.max()) >= self.plan.vocab_size:
            raise ValueError(self._damaged(position, tokens))
        return Batch(tokens, numbered(starts, width), tuple(ids), tuple(skipped))

    def _damaged(self, position: int, tokens: np.ndarray) -> str:
        """What to say of the first window that holds an id beyond the vocabulary. On a device it
        would be an assertion far from its cause, or an IndexError."""
        vocab_size = self.plan.vocab_size
        at = int(np.flatnonzero((tokens >= vocab_size).any(axis=1))[0])
        places = self.places(position + at, 1)
        source, part = self.plan.sources[int(places.source[0])], int(places.part[0])
        return (
            f"{source.folder}/{part_name(part, 'arrow')} {DAMAGED}: window "
            f"{int(places.window[0])} holds token id {int(tokens[at].max())}, but the tokenizer "
            f"has {vocab_size} tokens; {remedy(source.folder)}"
        )

    def _rows(
        self, position: int, count: int
    ) -> Iterator[tuple[PlannedSource, int, Part | None, int]]:
        """Of each window its source, the packed part that holds it (its number, and itself unless
        it is damaged and skipped), and its number there."""
        sources, parts, windows = self._columns(position, count)
        for index, number, window in zip(sources, parts, windows, strict=True):
            source = self.plan.sources[index]
            yield source, number, self._part(source.folder, number), window

    def _columns(self, position: int, count: int) -> tuple[list[int], list[int], list[int]]:
        """Source, part and window of each position."""
        places = self.places(position, count)
        return places.source.tolist(), places.part.tolist(), places.window.tolist()

    def _part(self, folder: str, number: int) -> Part | None:
        if self._broken and (folder, number) in self._broken:
            return None
        try:
            return self._parts.part(folder, number)
        except DamagedShard as error:
            if not self._skips:
                raise
            self._broken[folder, number] = str(error)
            return None

    def _keep(self, position: int) -> None:
        """Have the parts on stores that come next: the groups that a position is in, and those
        after them."""
        ends = min(position + SOON, len(self)), len(self)
        cursors, soon_ends, all_ends = (
            self._schedule.windows_until(at).tolist() for at in (position, *ends)
        )
        now: list[Key] = []
        soon: list[Key] = []
        for at, source in enumerate(self.plan.sources):
            if not self._on_store[at] or cursors[at] == soon_ends[at]:
                continue
            here, begin = self._group(source, cursors[at])
            now += [(source.folder, number) for number in here]
            if begin < all_ends[at]:
                after, _ = self._group(source, begin)
                soon += [(source.folder, number) for number in after]
        self._parts.keep(now, soon)

    def _group(self, source: PlannedSource, number: int) -> tuple[range, int]:
        """The parts of the group that a window of a source is in, and the first window after it;
        windows counted over epochs."""
        epoch, inside = divmod(number, source.num_windows)
        seed = self._seed(source, epoch)
        parts, end = group_at(inside, source.windows, source.parts_per_group, seed)
        return parts, epoch * source.num_windows + end

    def _seed(self, source: PlannedSource, epoch: int) -> int:
        return derive_seed(self.plan.seed, source.selection, epoch)

    def places(self, position: int, count: int) -> Place:
        """Where the windows position .. position + count - 1 stand on disk."""
        end = position + count
        first, last = position // BLOCK, max(position, end - 1) // BLOCK
        if position < 0 or end > self.plan.num_windows:
            raise IndexError(
                f"windows {position} to {end - 1}: the plan has {self.plan.num_windows} windows "
                f"({self.plan.tokens:,} tokens); make it again with more `--tokens`"
            )
        if any(self._on_store) and position // KEPT != self._kept:
            self._kept = position // KEPT
            self._keep(self._kept * KEPT)
        blocks = [self._block(number) for number in range(first, last + 1)]
        begin = position - first * BLOCK
        found = blocks[0] if first == last else np.concatenate(blocks, axis=1)
        return Place(*found[:, begin : begin + count])

    def _locate(self, block: int) -> np.ndarray:
        """Places of a block of positions: int64 [4, BLOCK or what is left], in the order of
        `Place`."""
        end = min((block + 1) * BLOCK, self.plan.num_windows)
        source, number = self._schedule.locate(np.arange(block * BLOCK, end))
        epoch, part, window = (np.empty_like(number) for _ in range(3))
        for index in np.unique(source):
            planned, here = self.plan.sources[index], source == index
            epoch[here], inside = np.divmod(number[here], planned.num_windows)
            for turn in np.unique(epoch[here]):
                now = here & (epoch == turn)
                seed = self._seed(planned, int(turn))
                part[now], window[now] = epoch_order(
                    inside[epoch[here] == turn], planned.windows, planned.parts_per_group, seed
                )
        return np.stack([source, epoch, part, window])

    def documents_at(self, position: int, count: int) -> list[tuple[str, tuple[str, ...]]]:
        """(source, hex ids of documents) of each window: what a training step saw."""
        seen = []
        for source, ids in self.ids_at(position, count):
            names = [name.tobytes() for name in ids]
            seen.append((source, tuple(name.hex() for name in names if name != PADDED)))
        return seen

    def ids_at(self, position: int, count: int) -> Iterator[tuple[str, np.ndarray]]:
        """Source, and the id (V16) of each document with PADDED, of each window; none of one that
        is damaged and skipped."""
        for source, _, part, window in self._rows(position, count):
            yield source.name, NO_IDS if part is None else part.row(window).ids

    def pieces(self, position: int, count: int) -> Iterator[Piece]:
        """Every document of these windows, in order."""
        epochs = self.places(position, count).epoch.tolist()
        for at, (source, part, opened, window) in enumerate(self._rows(position, count)):
            if opened is None:
                continue  # it is damaged and skipped
            row = opened.row(window)
            ends = np.append(row.starts[1:], len(row.tokens)).tolist()
            for begin, end, name in zip(row.starts.tolist(), ends, row.ids, strict=True):
                if (document := name.tobytes()) != PADDED:
                    yield Piece(
                        position=position + at,
                        source=source.name,
                        epoch=epochs[at],
                        part=part,
                        window=window,
                        begin=begin,
                        end=end,
                        id=document.hex(),
                        forgotten=document in opened.forgotten,
                        tokens=row.tokens[begin:end],
                    )

    def positions_of(self, *documents: str, selections: Container[str] | None = None) -> list[int]:
        """Positions whose window holds one of these documents (hex ids), of `selections` or of all:
        a scan of the plan."""
        wanted = pa.array(list(map(bytes.fromhex, documents)), schema.HASH)
        parts = parts_read(self.plan)
        holders = {
            (index, part, window)
            for index, source in enumerate(self.plan.sources)
            if selections is None or source.selection in selections
            for part in parts[index]
            for window in self._parts.part(source.folder, part).holders(wanted)
        }
        found: list[int] = []
        for first, places in self._chunks():
            keys = zip(places.source, places.part, places.window, strict=True)
            found += [first + at for at, key in enumerate(keys) if key in holders]
        return found

    def _chunks(self, size: int = 65_536) -> Iterator[tuple[int, Place]]:
        for first in range(0, len(self), size):
            yield first, self.places(first, min(size, len(self) - first))
