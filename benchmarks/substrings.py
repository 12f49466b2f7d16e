"""Repeated substrings on real text: what they cost, what they take from each source, and whether
all are found.

    python benchmarks/substrings.py FOLDER [...] [--min-bytes 300] [--part-megabytes 8]

FOLDERs have *.jsonl.gz. Truth is the definition: every stretch of `min-bytes` at every byte of
every text, sorted by its hash; of equal ones the first by (content hash, byte) stays.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from dedup import winnowing
from pipeline import schema
from pipeline.dedup_settings import Substrings
from pipeline.files import part_name
from pipeline.transforms import near_join, substrings, substrings_join
from pipeline.transforms.sweep import sweep

Texts = dict[bytes, tuple[str, str]]  # content hash -> source, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/substrings.py")
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--min-bytes", type=int, default=300)
    parser.add_argument("--part-megabytes", type=float, default=8)
    options = parser.parse_args()
    texts = read(options.folders)
    size = sum(len(text.encode()) for _, text in texts.values())
    print(f"{len(texts):,} different texts, {size / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as folder:
        root, wanted = Path(folder), Substrings(min_bytes=options.min_bytes)
        parts = write(root, texts, options.part_megabytes * 1e6)
        run(root, wanted, parts[:1], size)  # compiles
        run(root, wanted, parts, size, sys.stdout)
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")
        gone = removed(root, parts)
    by_source(texts, gone)
    length, _ = winnowing.sizes(options.min_bytes)
    ours = masks(texts, gone)
    for name, least in ((f"{options.min_bytes} bytes", options.min_bytes), ("noise", length - 1)):
        truth = repeated(texts, least)
        both = int((truth & ours).sum())
        print(
            f"{name}: {truth.sum():,} bytes repeat by definition, {ours.sum():,} are taken out; "
            f"recall {both / max(1, truth.sum()):.4f}, precision {both / max(1, ours.sum()):.4f}"
        )
    return 0


def read(folders: list[Path]) -> Texts:
    found: Texts = {}
    for path in (p for folder in folders for p in sorted(folder.glob("*.jsonl.gz"))):
        with gzip.open(path) as lines:
            for line in lines:
                row = orjson.loads(line)
                text = row["text"] or ""
                found.setdefault(schema.text_hash(text.encode()), (row["source"], text))
    return found


def write(root: Path, texts: Texts, part_bytes: float) -> list[int]:
    """Parts of documents, as `prepare` would write them."""
    waiting: list[dict[str, Any]] = []
    part, size = 0, 0
    last = next(reversed(texts))
    for content, (source, text) in texts.items():
        num_bytes = len(text.encode())
        size += num_bytes
        waiting.append(
            {
                "id": content,
                "content_hash": content,
                "source": source,
                "text": text,
                "num_bytes": num_bytes,
            }
        )
        if size >= part_bytes or content == last:
            table = pa.Table.from_pylist(waiting, schema.DOCUMENTS)
            languages = pa.table({"lang": pa.array([""] * len(waiting))})
            for name, rows in (("documents", table), ("signals/language", languages)):
                (root / name).mkdir(parents=True, exist_ok=True)
                pq.write_table(rows, root / name / part_name(part), row_group_size=2_048)
            waiting, part, size = [], part + 1, 0
    return list(range(part))


def run(
    root: Path, wanted: Substrings, parts: list[int], size: int, tell: Any | None = None
) -> None:
    """All stages, one after another, with the CPU time of each."""
    num = near_join.partitions(size)

    def each(name: str, work: Callable[[int], Any], numbers: list[int]) -> None:
        began = time.process_time()
        counters = [work(number) for number in numbers]
        spent = time.process_time() - began
        if tell is not None:
            totals = {key: sum(c[key] for c in counters) for key in counters[0]}
            print(f"{name:<20} {spent:6.2f} CPU s {size / 1e6 / spent:8.0f} MB/s  {totals}")

    def wind(part: int) -> dict[str, Any]:
        made = sweep(root, part, {"wind": substrings.wind(root, wanted, part)}, 5)["wind"]
        return made.counters

    partitions = list(range(num))
    each("wind", wind, parts)
    for which in substrings.ROUNDS:
        each(
            f"group {which}",
            lambda n, which=which: substrings_join.group(root, which, parts, n, num),
            partitions,
        )
        if which == "stretches":
            each("extend", lambda p: substrings.extend(root, wanted, p, num), parts)
    each("place", lambda p: substrings.place(root, wanted, p, num), parts)
    each("edit", lambda p: substrings.edit(root, p), parts)
    each("measure", lambda p: substrings.measure(root, p), parts)
    if tell is not None:
        for table in (
            "joins/stretches",
            "joins/grouped_stretches",
            "joins/extensions",
            "substrings",
        ):
            files = (root / table).glob("part-*")
            print(f"{table:<24} {sum(f.stat().st_size for f in files) / size:.3f} of the text")


def removed(root: Path, parts: list[int]) -> dict[bytes, list[tuple[int, int]]]:
    found: dict[bytes, list[tuple[int, int]]] = {}
    for part in parts:
        for row in pq.read_table(root / "edits/substrings" / part_name(part)).to_pylist():
            found.setdefault(row["id"], []).append((row["start"], row["end"]))
    return found


def by_source(texts: Texts, gone: dict[bytes, list[tuple[int, int]]]) -> None:
    sizes: dict[str, list[int]] = {}
    for content, (source, text) in texts.items():
        found = sizes.setdefault(source, [0, 0, 0])
        spans = gone.get(content, [])
        found[0] += len(text.encode())
        found[1] += sum(end - start for start, end in spans)
        found[2] += bool(spans)
    for source, (size, less, documents) in sorted(sizes.items(), key=lambda i: -i[1][1] / i[1][0]):
        print(f"{source:<32} {size / 1e6:7.2f} MB {less / size:7.2%} in {documents:,} documents")


def masks(texts: Texts, gone: dict[bytes, list[tuple[int, int]]]) -> np.ndarray:
    """Which bytes go, of all texts in the order of contents."""
    found = []
    for content in sorted(texts):
        mask = np.zeros(len(texts[content][1].encode()), bool)
        for start, end in gone.get(content, []):
            mask[start:end] = True
        found.append(mask)
    return np.concatenate(found)


def repeated(texts: Texts, size: int) -> np.ndarray:
    """The same by definition."""
    encoded = [texts[content][1].encode() for content in sorted(texts)]
    data = np.frombuffer(b"".join(encoded), np.uint8)
    ends = np.repeat(np.cumsum([len(text) for text in encoded]), [len(text) for text in encoded])
    base = np.uint64(0xD6E8FEB86659FD93)
    # Sum of byte x base^-at up to each byte; times base^at it is the hash of what follows.
    inverse = np.uint64(pow(int(base), -1, 1 << 64))
    powers = np.cumprod(np.full(len(data), base), dtype=np.uint64)
    falling = np.cumprod(np.full(len(data), inverse), dtype=np.uint64)
    sums = np.append(np.uint64(0), np.cumsum(data.astype(np.uint64) * falling, dtype=np.uint64))
    starts = np.flatnonzero(np.arange(len(data)) + size <= ends)
    hashes = (sums[starts + size] - sums[starts]) * powers[starts]
    order = np.argsort(hashes, kind="stable")
    again = np.zeros(len(starts), bool)
    again[order[1:]] = hashes[order[1:]] == hashes[order[:-1]]
    steps = np.zeros(len(data) + 1, np.int64)
    np.add.at(steps, starts[again], 1)
    np.add.at(steps, starts[again] + size, -1)
    covered: np.ndarray = np.cumsum(steps)[:-1] > 0
    return covered


if __name__ == "__main__":
    sys.exit(main())
