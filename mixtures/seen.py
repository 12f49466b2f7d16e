"""How much of a source that comes in later was read before: a changed `where` is a new source with
a cursor of its own, and selects documents again that the run has seen under another name.
"""

from __future__ import annotations

import itertools
from contextlib import closing
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from mixtures.loader import Loader
from mixtures.packed import DOCUMENTS
from mixtures.plan import Plan, PlannedSource
from pipeline.copy_index import Names
from pipeline.tables import names_of

WINDOWS = 4_096  # looked at together


def seen_before(plan: Plan) -> dict[str, int]:
    """Of each packed source that a later phase is the first to read, how many of its documents are
    in windows that other sources gave before.

    Windows are read once for all of these sources, and only up to the last of them that selects
    documents which an earlier one selects too.
    """
    documents = lru_cache(maxsize=None)(_documents)
    begins, again, seen = _begins(plan), {}, {}
    for at, begin in begins.items():
        counts = plan.schedule.windows_until(begin).tolist()
        own = documents(plan.sources[at])
        others = [documents(s) for s, count in zip(plan.sources, counts, strict=True) if count]
        again[at] = own[np.logical_or.reduce([np.isin(own, other) for other in others])]
        seen[at] = np.zeros(len(again[at]), bool)
    ends = sorted({begins[at] for at in begins if len(again[at])})
    with closing(Loader(plan)) as loader:
        for before, end in itertools.pairwise([0, *ends]):
            for first in range(before, end, WINDOWS):
                rows = loader.ids_at(first, min(WINDOWS, end - first))
                read = np.concatenate([ids for _, ids in rows]).view("S16")
                for at in (at for at in begins if begins[at] >= end and len(again[at])):
                    seen[at] |= np.isin(again[at], read)
    return {plan.sources[at].name: int(seen[at].sum()) for at in begins}


def _begins(plan: Plan) -> dict[int, int]:
    """Number of each source that the first phase does not read: where the first begins that
    does."""
    found = {}
    for at in range(len(plan.sources)):
        reading = [n for n, period in enumerate(plan.schedule.periods) if period.quotas[at]]
        if reading and reading[0]:
            found[at] = int(plan.schedule.begins[reading[0]])
    return found


def _documents(source: PlannedSource) -> Names:
    with pa.memory_map(str(Path(source.folder) / DOCUMENTS)) as file:
        return names_of(pa.ipc.open_file(file).read_all()["id"])
