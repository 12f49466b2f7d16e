"""A batch of windows: their tokens, and which documents stand in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixtures.borders import divided, numbered
from mixtures.part import Part

Window = tuple[Part | None, int]  # of which part, None: it is damaged and skipped; number there
Documents = tuple[np.ndarray, tuple[np.ndarray, ...]]  # Batch.documents and Batch.ids


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
    """Windows of a run. B windows of L = sequence_length.

    Documents are found when they are asked for first: that takes as long as the tokens do, and who
    trains without borders needs none.
    """

    tokens: np.ndarray  # [B, L + 1] int64; inputs are [:, :-1], targets [:, 1:]
    find: Callable[[], Documents]
    skipped: tuple[Skipped, ...] = ()  # windows that are blank, for their part is damaged

    @property
    def documents(self) -> np.ndarray:
        """[B, L + 1] int32: 0, 1, 2 ... within the window; it rises at borders."""
        return self._all()[0]

    @property
    def ids(self) -> tuple[np.ndarray, ...]:
        """Of each window: V16 [num_documents], ids by document index."""
        return self._all()[1]

    def _all(self) -> Documents:
        # no cached_property: before Python 3.12 its lock is one for the batches of all threads, and
        # a process that is forked while it is held waits for ever
        if "_found" not in vars(self):
            vars(self)["_found"] = self.find()
        found: Documents = vars(self)["_found"]
        return found

    def __getstate__(self) -> dict[str, Any]:  # to another process, which has not mapped the parts
        return {"tokens": self.tokens, "_found": self._all(), "skipped": self.skipped}


def documents_of(windows: Sequence[Window], width: int) -> Documents:
    """The documents of windows, each by its part and its number there; of one that is blank, whose
    part is None, each token is a document of its own."""
    starts: list[np.ndarray] = []
    ids: list[np.ndarray] = []
    for part, window in windows:
        if part is None:
            begins, names = np.arange(width), np.zeros(width, "V16")
        else:
            begins, names = divided(part.row(window), part.forgotten)
        starts.append(begins)
        ids.append(names)
    return numbered(starts, width), tuple(ids)
