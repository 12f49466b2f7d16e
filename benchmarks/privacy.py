"""What the editor `privacy` finds in real text, by source, and what it costs; no text is printed.

python benchmarks/privacy.py FOLDER ...     # folders of *.jsonl.gz with `text` and `source`
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa

from filters import privacy
from filters.segments import Texts


def main(folders: list[str]) -> None:
    privacy.find(Texts(pa.array(["a@b.cn 13912345670"])), {})  # compiles
    for folder in map(Path, folders):
        for path in sorted(folder.glob("*.jsonl.gz")):
            for source, texts in by_source(path).items():
                print(row(source, texts), flush=True)


def by_source(path: Path) -> dict[str, list[str]]:
    found = defaultdict(list)
    with gzip.open(path) as file:
        for record in map(json.loads, file):
            found[record["source"]].append(record["text"])
    return found


def row(source: str, texts: list[str]) -> str:
    batch = Texts(pa.array(texts, pa.large_string()))
    megabytes = int(batch.offsets[-1]) / 1e6
    begin = time.process_time()
    edits = privacy.find(batch, {})
    cost = 1e3 * (time.process_time() - begin) / megabytes
    counts = ", ".join(f"{num} {kind}" for kind, num in Counter(edits.kinds.to_pylist()).items())
    return f"{source:28}{megabytes:8.1f} MB{cost:8.1f} CPU-ms/MB  {counts or 'nothing'}"


if __name__ == "__main__":
    main(sys.argv[1:])
