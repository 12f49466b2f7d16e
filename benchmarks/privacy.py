"""What the editor `privacy` finds in real text, by genre and source, and what it costs; no text is
printed.

    python benchmarks/privacy.py FOLDER ...     # as in detectors.py: JSONL, Parquet, WARC
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict

import pyarrow as pa
from human_texts import documents

from filters import privacy
from filters.segments import Texts

SOURCE_BYTES = 1 << 40  # of a source: all


def main(folders: list[str]) -> None:
    privacy.find(Texts(pa.array(["a@b.cn 13912345670"])), {})  # compiles
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in documents(folders, SOURCE_BYTES):
        found[one.genre, one.source].append(one.text)
    print("| genre | source | documents | MB | CPU-ms a MB | found |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for (genre, source), texts in sorted(found.items()):
        print("|", " | ".join([genre, source, *cells(texts)]), "|", flush=True)


def cells(texts: list[str]) -> list[str]:
    batch = Texts(pa.array(texts, pa.large_string()))
    megabytes = int(batch.offsets[-1]) / 1e6
    begin = time.process_time()
    edits = privacy.find(batch, {})
    cost = 1e3 * (time.process_time() - begin) / megabytes
    counts = ", ".join(f"{num} {kind}" for kind, num in Counter(edits.kinds.to_pylist()).items())
    return [f"{len(texts):,}", f"{megabytes:.1f}", f"{cost:.1f}", counts or "nothing"]


if __name__ == "__main__":
    main(sys.argv[1:])
