"""CPU-ms that each signal group takes for a MB of text, words and lines shared as in a corpus.

The default ones are to do 40 MB/s a core together, all of them 20. First pass over the texts, after
a call on a few of them that loads what was compiled; the least of TURNS, one in the short form.
"""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
from texts import texts

from filters.segments import Texts
from filters.signals import GROUPS
from pipeline import heap
from pipeline.groups import DEFAULT

BATCH = 2_048  # documents, as in a row group
TURNS = 3
FEW = 32  # documents of the first call
LEAST_BYTES = 4_000_000  # below, it is only seen whether it runs
SEGMENTS = "words, lines"


def signals(num_bytes: int, _: Path) -> None:
    """Print a line for each language and group."""
    heap.settle()
    for language in ("en", "zh"):
        sample = texts(language, num_bytes)
        batches = [sample[at : at + BATCH] for at in range(0, len(sample), BATCH)]
        size = sum(len(text.encode()) for text in sample.to_pylist()) / 1e6
        _pass([sample[:FEW]], language)
        turns = TURNS if num_bytes >= LEAST_BYTES else 1
        runs = [_pass(batches, language) for _ in range(turns)]
        best = {name: min(run[name] for run in runs) * 1e3 / size for name in runs[0]}
        print(f"\n{language}: signal groups, CPU-ms for a MB of {size:.1f}")
        for name, cost in best.items():
            print(f"  {name:<16}{cost:8.2f}")
        for what, names in (("default", (SEGMENTS, *DEFAULT)), ("all", tuple(best))):
            total = sum(best[name] for name in names)
            print(f"  {what:<16}{total:8.2f}   {1e3 / total:6.1f} MB/s", flush=True)


def _pass(batches: list[pa.Array], language: str) -> dict[str, float]:
    """CPU seconds of each group over all batches."""
    seconds = dict.fromkeys((SEGMENTS, *GROUPS), 0.0)
    for batch in batches:
        shared, nothing = Texts(batch), pa.array([""] * len(batch))
        languages = pa.array([language] * len(batch))
        begin = time.process_time()
        _ = shared.segments
        seconds[SEGMENTS] += time.process_time() - begin
        for name, group in GROUPS.items():
            begin = time.process_time()
            group.measure(shared, {"lang": languages, **dict.fromkeys(group.reads, nothing)})
            seconds[name] += time.process_time() - begin
    return seconds
