"""One pass over the text of a part: each row group is read once, for all stages that want it.

A stage of the sweep is a generator. It opens its files, takes a `Batch` for each row group until
None says that there are no more, and returns its counters; then its files stand:

    def stage(...) -> Stage:
        with writer:
            while (batch := (yield)) is not None:
                ...
        return counters

A stage holds its last batch until the next one comes, so all that it makes of one stands in a
function of its own, and is gone with it: else two row groups would be in memory with all that was
found in them, 45 MB each.

What each stage costs is measured, compilations left out; reading, which they share, is shared
equally. What a batch makes for more than one stage (its shingles) counts for the first that asks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dedup.shingles import Hashes, Offsets, folded_shingles
from filters.segments import Texts
from kernels import stopwatch
from pipeline.tables import text_groups


@dataclass(frozen=True)
class Batch:
    """A row group of documents."""

    texts: Texts
    contents: pa.Array  # content_hash of each
    columns: Mapping[str, pa.Array]  # lang ("" while languages are being found), what stages read
    ngram: int
    forgotten: npt.NDArray[np.bool_]  # their texts are empty here; what is made of them is null

    @property
    def shingles(self) -> tuple[Hashes, Offsets]:
        """As from dedup.shingles, of all texts."""
        return self._shingles[:2]

    @property
    def folded(self) -> Hashes:
        """The folded hash of each text, uint64[n, 2]."""
        return self._shingles[2]

    @cached_property
    def _shingles(self) -> tuple[Hashes, Offsets, Hashes]:
        return folded_shingles(self.texts.array, self.ngram)

    def forget(self) -> None:
        """Drop what was found in the texts: every stage has seen it."""
        vars(self).pop("_shingles", None)
        vars(self.texts).pop("segments", None)


Stage = Generator[None, Batch | None, dict[str, Any]]


class Swept(NamedTuple):
    counters: dict[str, Any]
    seconds: float
    cpu_seconds: float


def sweep(
    root: Path, part: int, stages: Mapping[str, Stage], ngram: int, reads: Iterable[str] = ()
) -> dict[str, Swept]:
    """Run all stages over the documents of a part, with the columns `reads` beside text and
    language."""
    counters: dict[str, dict[str, Any]] = {}
    costs = {name: np.zeros(2) for name in stages}
    reading = np.zeros(2)
    lap = _stopwatch()
    with ExitStack() as opened:
        for name, stage in stages.items():
            opened.enter_context(closing(stage))
            next(stage)
            costs[name] += lap()
        groups = text_groups(root, part, "signals/language" not in stages, reads)
        batches = (_batch(*group, ngram) for group in groups)
        for batch in itertools.chain(batches, [None]):
            reading += lap()
            for name, stage in stages.items():
                try:
                    stage.send(batch)
                except StopIteration as end:
                    counters[name] = end.value
                costs[name] += lap()
            if batch is not None:
                batch.forget()
    share = reading / len(stages)
    return {name: Swept(counters[name], *(costs[name] + share).tolist()) for name in stages}


def _batch(
    texts: pa.Array, contents: pa.Array, columns: Mapping[str, pa.Array], ngram: int
) -> Batch:
    forgotten = np.asarray(texts.is_null())
    filled = texts.fill_null("") if forgotten.any() else texts
    return Batch(Texts(filled), contents, columns, ngram, forgotten)


def _stopwatch() -> Callable[[], stopwatch.Spent]:
    """A function that gives the seconds and CPU seconds since it was last called."""
    before = stopwatch.spent()

    def lap() -> stopwatch.Spent:
        nonlocal before
        spent = stopwatch.since(before)
        before = stopwatch.spent()
        return spent

    return lap
