"""Near duplicates at scale: planted clusters through the joins of `prepare`, and what it costs.

    python benchmarks/dedup_scale.py FOLDER 1e5 1e6 1e7 [--workers 2] [--keep]

What is synthetic: the texts (60 words by a hash of cluster, member and place; 56 shingles of five
words), the content hashes (cluster and member, so that a pair tells what it is of), and the records
that ingest would have left. From there on it is the code of `prepare`, run by Beam: signatures,
forest, components, candidates, pairs. So a document has 300 bytes; what grows with the length of a
text (shingles, signatures) is measured by bounded.py and near_copies.py.

What is planted, by share of the documents: texts that stand alone (.6); pairs at a Jaccard of .60
to .96 (.2); clusters of 3 to 1,000 (.1; of more than
s members 3/s of them); large ones, up to 100,000 members (.06); chains, of which
only neighbours are pairs, up to 100,000 long (.02); one text many times (.02). Two texts that
share all but the last t words have a Jaccard of (56 - t) / (56 + t): every pair is known.

Memory is the peak of the whole process tree; bytes are of the files of a stage.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import tokenizers
from measure import run

from dedup.clusters import MAX_STORED
from dedup.contraction import gathered, scattered
from dedup.curve import collision_probability
from pipeline import commits, schema
from pipeline.corpus import part_paths
from pipeline.files import part_name, read_json, write_sealed
from pipeline.readers import Piece
from pipeline.run import run_sweep
from pipeline.settings import CorpusSettings
from pipeline.shards import Shard, load_shards, write_shards
from pipeline.stages import Job
from pipeline.staleness import fingerprints_of
from pipeline.tables import halves_of
from pipeline.unique import near_unique

WORDS, SHINGLES = 60, 56
STEP = 4  # words that a text of a chain is further: neighbours .867, the next but one .75
PART_DOCUMENTS, GROUP_DOCUMENTS = 100_000, 2_048  # 30 MB, as shard_bytes; rows of a group
LARGEST = 100_000  # members
SEED = np.uint64(17)
STAGES = ("signatures", "forest", "components", "candidates", "pairs")

ALONE, PAIR, CLUSTER, CHAIN, COPIES = range(5)
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Planted:
    """Of each document its cluster, the number that it has there, and its last words of its own;
    documents of a cluster stand together."""

    kinds: npt.NDArray[np.uint8]  # of each cluster
    cluster: Ints
    member: Ints
    tail: Ints


def plant(num: int) -> Planted:
    """The same for every call with the same number."""
    pick = np.random.default_rng(17)
    sizes: list[Ints] = []
    kinds: list[npt.NDArray[np.uint8]] = []

    def add(kind: int, of_size: Ints) -> None:
        sizes.append(of_size)
        kinds.append(np.full(len(of_size), kind, np.uint8))

    largest = min(LARGEST, num // 100)
    add(PAIR, np.full(num // 10, 2))
    heavy = np.minimum(3 / (1 - pick.random(num)), min(MAX_STORED, largest)).astype(np.int64)
    add(CLUSTER, _filled(heavy, num // 10))
    halves = largest >> np.arange(0, 7)
    add(CLUSTER, _filled(np.resize(halves, num), num * 6 // 100))
    add(CHAIN, _filled(np.resize(halves, num), num * 2 // 100))
    add(COPIES, _filled(np.resize(halves, num), num * 2 // 100))
    add(ALONE, np.ones(num - sum(int(s.sum()) for s in sizes), np.int64))
    of_size, of_kind = np.concatenate(sizes), np.concatenate(kinds)
    cluster = np.repeat(np.arange(len(of_size)), of_size)
    member = np.arange(num) - np.repeat(np.cumsum(of_size) - of_size, of_size)
    kind = of_kind[cluster]
    tail = np.where(kind == PAIR, pick.integers(1, 15, num), pick.integers(1, 9, num))
    tail[(member == 0) | (kind == CHAIN) | (kind == COPIES)] = 0
    return Planted(of_kind, cluster, member, tail)


def _filled(of_size: Ints, num: int) -> Ints:
    """The first of these sizes, as many as `num` documents make."""
    return of_size[np.cumsum(of_size) <= num]


def most_tail(threshold: float) -> int:
    """Own words at the end with which two texts are still a pair."""
    return int(np.floor(SHINGLES * (1 - threshold) / (1 + threshold)))


# --- a corpus as ingest leaves it -----------------------------------------------------------------


def write_documents(root: Path, planted: Planted) -> int:
    """documents/ in parts, clusters spread over all of them; returns how many parts."""
    order = np.random.default_rng(18).permutation(len(planted.cluster))
    parts = range(-(-len(order) // PART_DOCUMENTS))
    for table in ("documents", "signals/language"):
        (root / table).mkdir(parents=True)
    for part in parts:
        rows = order[part * PART_DOCUMENTS : (part + 1) * PART_DOCUMENTS]
        pq.write_table(
            pa.table({"lang": pa.repeat("en", len(rows))}),
            root / "signals/language" / part_name(part),
            row_group_size=GROUP_DOCUMENTS,
        )
        with pq.ParquetWriter(
            root / "documents" / part_name(part), _table(planted, rows[:0]).schema
        ) as writer:
            for begin in range(0, len(rows), GROUP_DOCUMENTS):
                writer.write_table(_table(planted, rows[begin : begin + GROUP_DOCUMENTS]))
    return len(parts)


def _table(planted: Planted, rows: Ints) -> pa.Table:
    cluster, tail = planted.cluster[rows], planted.tail[rows]
    member = np.where(planted.kinds[cluster] == COPIES, 0, planted.member[rows])
    chain = planted.kinds[cluster] == CHAIN
    place = np.arange(WORDS) + np.where(chain, STEP * member, 0)[:, None]
    own = np.arange(WORDS) >= WORDS - tail[:, None]
    key = np.where(own, member[:, None] + (1 << 30), 0)
    words = _mixed(_mixed(_mixed(cluster[:, None]) ^ _mixed(key)) ^ _mixed(place)) >> np.uint64(46)
    letters = (words[:, :, None] // np.array([26**3, 26**2, 26, 1], np.uint64)) % np.uint64(26)
    data = np.full((len(rows), WORDS, 5), ord(" "), np.uint8)
    data[:, :, :4] = letters + np.uint64(ord("a"))
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * (5 * WORDS)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.table(
        {
            "content_hash": _contents(cluster, member, tail),
            "url": pa.nulls(len(rows), pa.string()),
            "text": pa.Array.from_buffers(pa.string(), len(rows), buffers),
        }
    )


def _mixed(value: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    return scattered(value.astype(np.uint64) + SEED)


def _contents(cluster: Ints, member: Ints, tail: Ints) -> pa.Array:
    """Content hashes that look like any others."""
    halves = np.stack([_mixed(cluster), _mixed(member << 8 | tail)], axis=1)
    data = pa.py_buffer(np.ascontiguousarray(halves, ">u8"))
    return pa.Array.from_buffers(schema.HASH, len(cluster), [None, data])


def _planted(contents: pa.Array) -> tuple[Ints, Ints, Ints]:
    """Cluster, member and tail of content hashes."""
    cluster, rest = (gathered(halves_of(contents).T.astype(np.uint64)) - SEED).astype(np.int64)
    return cluster, rest >> 8, rest & 255


def make_job(root: Path) -> Job:
    """A job whose stages up to ingest are named and not made."""
    file = root / "tokenizer.json"  # workers load one before they begin
    if not file.exists():
        tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a")).save(str(file))
    settings = CorpusSettings(
        inputs=({"source": "planted", "files": "planted.jsonl"},),
        tokenizer={"file": str(file), "eos": None},
        signals=("language",),
    )
    names = ("ingest", "ingest/jsonl", *STAGES)
    prints = tuple((name, name) for name in names)
    return Job(root, settings, "planted", settings.tokenizer, "none", "tokenizers", prints)


def write_records(root: Path, num_parts: int) -> None:
    """inputs.json and the records of ingest."""
    piece = Piece("planted.jsonl", "planted.jsonl", num_bytes=PART_DOCUMENTS * 5 * WORDS)
    files = {("planted", "planted.jsonl"): "planted.jsonl"}
    write_shards(root, files, [("planted", piece)] * num_parts)
    job = make_job(root)
    prints = fingerprints_of(job)
    for shard in load_shards(root):
        output = [root / "documents" / part_name(shard.part)]
        commits.commit(root, "ingest", shard.part, prints.part("ingest", shard), output, {}, 0, 0)
    settings = {"near": job.settings.near.model_dump()}
    write_sealed(root / "corpus.json", {"format": schema.FORMAT_VERSION, "settings": settings})


# --- the joins, in a process of their own ---------------------------------------------------------


def join(root: Path, workers: int) -> None:
    """What `prepare` runs from the signatures on."""
    import apache_beam as beam

    from pipeline import launch  # loads Beam: not in the process that generates and counts
    from pipeline.build import AllShards, near_duplicates

    def steps(pipeline: beam.Pipeline, job: Job, lanes: int) -> None:
        start = pipeline | "Start" >> beam.Create([0])
        shards = start | "Parts" >> AllShards(job, "sweep", lanes)
        signed = shards | "Sign" >> beam.Map(_sign, job).with_output_types(Shard)
        near_duplicates(signed, job, lanes)

    launch.run_local(make_job(root), "processes", workers, contextlib.nullcontext(), steps)


def _sign(shard: Shard, job: Job) -> Shard:
    return run_sweep(job, ("signatures",), shard)


# --- what was found -------------------------------------------------------------------------------


def expected_pairs(planted: Planted, most: int) -> tuple[int, npt.NDArray[np.float64]]:
    """How many pairs the clusters with stored pairs hold, and how many pairs of two there are at
    each length of tail."""
    size = np.bincount(planted.cluster)
    kind = planted.kinds
    good = np.bincount(planted.cluster, planted.tail <= most).astype(np.int64)
    stored = size <= MAX_STORED
    whole = (kind == CLUSTER) & stored
    pairs = int((good[whole] * (good[whole] - 1) // 2).sum())
    pairs += int((size[(kind == CHAIN) & stored] - 1).sum())
    second = (kind[planted.cluster] == PAIR) & (planted.member == 1)
    at = np.bincount(planted.tail[second], minlength=SHINGLES).astype(np.float64)
    return pairs + int(at[: most + 1].sum()), at


def expected_kept(planted: Planted, most: int) -> int:
    """Of the documents in clusters, walked by their number, those that stay."""
    size = np.bincount(planted.cluster)
    good = np.bincount(planted.cluster, planted.tail <= most).astype(np.int64)
    kind = planted.kinds
    apart = (kind == PAIR) | (kind == CLUSTER)
    kept = int((size - good + 1)[apart].sum()) + int((-(-size // 2))[kind == CHAIN].sum())
    return kept + int((kind == COPIES).sum())


def found_pairs(root: Path, planted: Planted, most: int) -> Iterator[tuple[bool, int]]:
    """Of each file of pairs: of each pair whether it was planted, and its tail if it is of two."""
    for path in part_paths(root, "pairs"):
        table = pq.read_table(path)
        (a, member_a, tail_a), (b, member_b, tail_b) = (
            _planted(table[side].combine_chunks()) for side in ("a", "b")
        )
        tail = np.maximum(tail_a, tail_b)
        kind = planted.kinds[a]
        near = (kind == CHAIN) & (np.abs(member_a - member_b) == 1)
        right = (a == b) & (near | ((kind != CHAIN) & (tail <= most)))
        yield right, np.where(kind == PAIR, tail, -1)


def kept(root: Path, planted: Planted) -> int:
    rows = np.flatnonzero(planted.kinds[planted.cluster] != ALONE)
    rows = rows[(planted.kinds[planted.cluster[rows]] != COPIES) | (planted.member[rows] == 0)]
    contents = _contents(planted.cluster[rows], planted.member[rows], planted.tail[rows])
    return int(near_unique(root, contents).sum())


def report(root: Path, planted: Planted) -> None:
    job = make_job(root)
    near = job.settings.near
    most = most_tail(near.threshold)
    expected, at = expected_pairs(planted, most)
    found = right = 0
    at_found = np.zeros(SHINGLES)
    for is_right, tail in found_pairs(root, planted, most):
        found, right = found + len(is_right), right + int(is_right.sum())
        at_found += np.bincount(tail[tail >= 0], minlength=SHINGLES)
    print(
        f"  pairs: {expected:,} planted, {found:,} found, recall {right / expected:.6f}, "
        f"precision {right / found:.6f}"
    )
    for tail in range(most - 2, most + 1):
        jaccard = (SHINGLES - tail) / (SHINGLES + tail)
        chance = collision_probability(jaccard, near.bands, near.rows)
        print(
            f"    at {jaccard:.3f}: {at_found[tail] / at[tail]:.5f} of {at[tail]:,.0f} "
            f"(curve {chance:.5f})"
        )
    print(
        f"  documents of clusters that stay: {expected_kept(planted, most):,} planted, "
        f"{kept(root, planted):,} kept"
    )


def stage_costs(root: Path, num: int) -> None:
    print("  stage         records  CPU-s  slowest s   MB made  bytes/document")
    for stage in sorted((root / "stats").glob("*"), key=lambda path: path.stat().st_mtime):
        records = [read_json(path) for path in sorted(stage.glob("part-*.json"))]
        if stage.name == "ingest" or not records:
            continue
        made = sum(o["bytes"] for record in records for o in record["outputs"].values())
        print(
            f"  {stage.name:12} {len(records):8} {sum(r['cpu_seconds'] for r in records):6.1f}"
            f" {max(r['seconds'] for r in records):10.2f} {made / 1e6:9.1f} {made / num:15.2f}"
        )


def measure_scale(folder: Path, num: int, workers: int, keep: bool) -> None:
    root = folder / f"scale-{num}"
    planted = plant(num)
    if not (root / "corpus.json").exists():
        shutil.rmtree(root, ignore_errors=True)
        write_records(root, write_documents(root, planted))
    for made in ("joins", "pairs", "clusters", "copies", *(f"stats/{s}" for s in STAGES)):
        shutil.rmtree(root / made, ignore_errors=True)
    subprocess.run(["sync"], check=True)
    command = [sys.executable, __file__, str(root), "join", "--workers", str(workers)]
    cost = run(command)
    print(
        f"{num:,} documents, {len(planted.kinds):,} clusters, largest "
        f"{np.bincount(planted.cluster).max():,}, {workers} workers, load {cost.load:.1f}\n"
        f"  {cost.wall_seconds:,.0f} s wall, {cost.cpu_seconds:,.0f} CPU-s, peak "
        f"{cost.peak_bytes / 1e6:,.0f} MB, written {cost.written_bytes / 1e6:,.0f} MB"
    )
    stage_costs(root, num)
    report(root, planted)
    sys.stdout.flush()
    if not keep:
        shutil.rmtree(root)


def scale(num_bytes: int, folder: Path) -> None:
    """For run.py: as many documents as there are bytes for."""
    measure_scale(folder, max(10_000, num_bytes // (5 * WORDS)), 2, keep=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/dedup_scale.py")
    parser.add_argument("folder", type=Path, help="needs 600 bytes a document")
    parser.add_argument("documents", nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="the corpus stays, for a later call")
    options = parser.parse_args()
    if options.documents == ["join"]:
        join(options.folder, options.workers)
        return 0
    for num in options.documents:
        measure_scale(options.folder, int(float(num)), options.workers, options.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
