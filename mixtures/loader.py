"""The order of training data is a function of (seed, position); this file reads it from disk.

`position` is the global window number of a run. There is no other state, so resume is O(1) at any
step, and any number of ranks, each asking for its own positions, sees the same global sequence.
numpy only: a trainer wraps the arrays, and this module knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from mixtures import loader_state
from mixtures.batch import Batch, Skipped, Window, documents_of
from mixtures.open_parts import OpenParts
from mixtures.packed import PADDED, remedy
from mixtures.part import Part
from mixtures.places import Place, Places, coming
from mixtures.plan import Plan
from mixtures.shard_cache import DamagedShard, ShardCache
from pipeline.files import DAMAGED, part_name
from pipeline.objects import is_url

KEPT = 512  # positions: how often it is asked which parts of a store are held
NO_IDS = np.zeros(0, "V16")

OnDamage = Literal[
    "fail", "skip"
]  # what becomes of windows that cannot be read as they were packed


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
        self._places = Places(plan)
        self._parts = OpenParts(plan.sequence_length, cache, verify=on_damage == "skip")
        self._skips = on_damage == "skip"
        self._broken: dict[tuple[str, int], str] = {}  # (folder, part) -> why
        self._folders = [source.folder for source in plan.sources]
        self._has_stores = any(map(is_url, self._folders))
        self._kept = -1  # of which KEPT positions the parts are held

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
        windows = self.opened(position, count)
        if not windows:
            nothing = np.empty((0, width), np.int32), ()
            return Batch(np.empty((0, width), np.int64), lambda: nothing)
        blank = np.full(width, self.plan.eos_id or 0) if self._broken else None
        packed = np.concatenate(
            [blank if part is None else part.tokens(window) for part, window in windows]
        )
        tokens = packed.astype(np.int64).reshape(count, width)
        if int(packed.max()) >= self.plan.vocab_size:
            raise ValueError(self._damaged(position, tokens))
        skipped = tuple(self._skipped(position, windows)) if self._broken else ()
        return Batch(tokens, partial(documents_of, windows, width), skipped)

    def _damaged(self, position: int, tokens: np.ndarray) -> str:
        """What to say of the first window that holds an id beyond the vocabulary. On a device it
        would be an assertion far from its cause, or an IndexError."""
        vocab_size = self.plan.vocab_size
        at = int(np.flatnonzero((tokens >= vocab_size).any(axis=1))[0])
        ((source, part, window),) = self._places.rows(position + at, 1)
        folder = self._folders[source]
        return (
            f"{folder}/{part_name(part, 'arrow')} {DAMAGED}: window {window} holds token id "
            f"{int(tokens[at].max())}, but the tokenizer has {vocab_size} tokens; {remedy(folder)}"
        )

    def _skipped(self, position: int, windows: Sequence[Window]) -> Iterator[Skipped]:
        rows = self._places.rows(position, len(windows))
        for at, (source, part, window) in enumerate(rows):
            if windows[at][0] is None:
                name, why = (
                    self.plan.sources[source].name,
                    self._broken[self._folders[source], part],
                )
                yield Skipped(position + at, name, part, window, why)

    def opened(self, position: int, count: int) -> list[Window]:
        """Of each window the packed part that holds it, None where that is damaged and skipped, and
        its number there."""
        if self._has_stores and position // KEPT != self._kept:
            self._kept = position // KEPT
            self._parts.keep(*coming(self.plan, self._kept * KEPT))
        folders = self._folders
        return [
            (self.part(folders[source], part), window)
            for source, part, window in self._places.rows(position, count)
        ]

    def part(self, folder: str, number: int) -> Part | None:
        """An open part of a packed folder; None: it is damaged and skipped."""
        if self._broken and (folder, number) in self._broken:
            return None
        try:
            return self._parts.part(folder, number)
        except DamagedShard as error:
            if not self._skips:
                raise
            self._broken[folder, number] = str(error)
            return None

    def places(self, position: int, count: int) -> Place:
        """Where the windows position .. position + count - 1 stand on disk.

        Raises:
            IndexError: the plan has fewer; says the remedy.
        """
        return self._places.arrays(position, count)

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
        rows = self._places.rows(position, count)
        for (part, window), (source, _, _) in zip(self.opened(position, count), rows, strict=True):
            ids = NO_IDS if part is None else part.row(window).ids
            yield self.plan.sources[source].name, ids
