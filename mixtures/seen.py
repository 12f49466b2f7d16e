"""How much of a source that comes in later was read before: a changed `where` is a new source with
a cursor of its own, and selects documents again that the run has seen under another name.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from mixtures.loader import Loader
from mixtures.packed import DOCUMENTS
from mixtures.plan import Plan, PlannedSource

WINDOWS = 4_096  # looked at together


def seen_before(plan: Plan) -> dict[str, int]:
    """Of each packed source that a later phase is the first to read, how many of its documents are
    in windows that other sources gave before."""
    found = {}
    begins = plan.schedule.begins.tolist()
    own = {source.name: _documents(source) for source in plan.sources}
    for at, source in enumerate(plan.sources):
        reading = [n for n, period in enumerate(plan.schedule.periods) if period.quotas[at]]
        if not reading or not reading[0]:
            continue
        begin = begins[reading[0]]
        counts = plan.schedule.windows_until(begin).tolist()
        others = [s for s, count in zip(plan.sources, counts, strict=True) if count]
        again = set().union(*(own[s.name] & own[source.name] for s in others))
        found[source.name] = len(again & _read(plan, begin)) if again else 0
    return found


def _documents(source: PlannedSource) -> set[str]:
    with pa.memory_map(str(Path(source.folder) / DOCUMENTS)) as file:
        ids = pa.ipc.open_file(file).read_all()["id"].combine_chunks()
    raw = np.frombuffer(ids.buffers()[1], "V16")[ids.offset : ids.offset + len(ids)]
    return {name.tobytes().hex() for name in raw}


def _read(plan: Plan, end: int) -> set[str]:
    """Documents of the windows before position `end`."""
    loader = Loader(plan)
    return {
        name
        for first in range(0, end, WINDOWS)
        for _, names in loader.documents_at(first, min(WINDOWS, end - first))
        for name in names
    }
