"""What near deduplication of a corpus of some size would take, from measured figures.

Each figure is a rate of RATES times a count, or the arithmetic of the join's own code. The rates
were measured on two cores, up to 1e7 documents: that they stay so above is assumed. What grows
otherwise (partitions, the slices that they read, rounds) is computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.dedup_settings import Near
from pipeline.prices import Prices
from pipeline.transforms import contraction, near_join


class Rate(NamedTuple):
    value: float
    unit: str
    source: str


SCALE = "dedup_scale.py 1e7"
RATES: dict[str, Rate] = {
    "sign": Rate(119e6, "bytes of text a CPU-s", "near_copies.py, Chinese; English: 158"),
    "store": Rate(9.3e-6, "CPU-s a document", f"{SCALE}, signatures: keys, sorted, and sketches"),
    "forest": Rate(6.0e-6, "CPU-s a document", SCALE),
    "edges": Rate(2.3, "edges a document", f"{SCALE}, where two fifths are in clusters"),
    "unite": Rate(1.5e-6, "CPU-s an edge", "1e6 edges between 1.9e6 documents"),
    "star": Rate(0.46e-6, "CPU-s an edge and round", "a chain of 1e6"),
    "rounds": Rate(17, "rounds", "a chain of 1e6; 2.6 more for ten times that, clusters take 3"),
    "candidates": Rate(0.36, "of the documents", f"{SCALE}; of 20 GB of bounded.py: some .1"),
    "shingles": Rate(2.7, "bytes a byte of their text", "Chinese; English: 1.4"),
    "verify": Rate(8e-6, "CPU-s a document", f"{SCALE}, at 8 pairs a document"),
    "slice": Rate(20e-6, "CPU-s a slice", "pipeline/tables.py, read_batch: a file opened, mapped"),
}
KEY_BYTES, COPIES_BYTES = 12, 16  # of schema.BAND_KEYS; of schema.COPIES, about
SLICES_SHARE = 0.2  # of the CPU time: above it larger shards are proposed
LEAST_SHARD_BYTES = 32_000_000  # the default of corpus.yaml
HOURS = 24  # in which it is to end, unless the number of workers is given
WRITE_BYTES = 500e6  # a second, of the one file of components
LIBRARIES_BYTES = 300_000_000  # of a worker before its first part


@dataclass(frozen=True)
class Plan:
    documents: int
    text_bytes: int
    shard_bytes: int
    parts: int
    partitions: int
    edges: int
    rounds: int  # of contraction; 0: one process unites them
    cpu_seconds: dict[str, float]
    alone_seconds: float  # of them by one process, while the others wait
    kept_bytes: int  # on the disk for good: keys, sketches, copies
    moved_bytes: dict[str, int]  # written by one step and read by another, each once
    worker_bytes: int  # peak of a worker, about
    workers: int

    @property
    def slices(self) -> int:
        """Reads of one part's file by one partition, in the forest and in pairs."""
        return 2 * self.parts * self.partitions

    @property
    def hours(self) -> float:
        shared = sum(self.cpu_seconds.values()) - self.alone_seconds
        return (shared / self.workers + self.alone_seconds) / 3600


def plan(
    documents: int,
    mean_bytes: float,
    near: Near,
    shard_bytes: int | None = None,
    workers: int | None = None,
) -> Plan:
    """Without `shard_bytes` the least that keeps slices below SLICES_SHARE; without `workers` as
    many as end within HOURS."""
    text_bytes = round(documents * mean_bytes)
    if shard_bytes is None:
        shard_bytes = LEAST_SHARD_BYTES
        while not _is_coarse(plan(documents, mean_bytes, near, shard_bytes, 1)):
            shard_bytes *= 2
    partitions, parts = near_join.partitions(text_bytes), -(-text_bytes // shard_bytes)
    edges = round(_rate("edges") * documents)
    in_rounds = contraction.is_needed(edges)
    rounds = round(_rate("rounds")) if in_rounds else 0
    united = _rate("star") * edges * rounds if in_rounds else _rate("unite") * edges
    cpu_seconds = {
        "signatures": text_bytes / _rate("sign") + _rate("store") * documents,
        "forest": _rate("forest") * documents + _rate("slice") * parts * partitions,
        "components": united,
        "candidates": _rate("candidates") * text_bytes / _rate("sign"),
        "pairs": _rate("verify") * documents + _rate("slice") * parts * partitions,
    }
    sketch_bytes = -(-near.permutations // 64) * 8
    joined = documents * (KEY_BYTES * near.bands + sketch_bytes)
    shingled = round(_rate("candidates") * _rate("shingles") * text_bytes)
    moved = {
        "keys, sketches": joined,
        "forests": 16 * edges,
        "rounds": 3 * 16 * edges * rounds,
        "candidates": shingled,
    }
    candidates = _rate("candidates") * documents
    alone_seconds = 16 * candidates / WRITE_BYTES if in_rounds else united
    # In memory a key is 16 bytes, and sorting holds three copies.
    held = max(4 * joined / partitions, shingled / partitions)
    united_bytes = 3 * 32 * contraction.EDGES_A_PARTITION
    held = max(held, united_bytes if in_rounds else 5 * documents + 40 * candidates)
    if workers is None:
        alone_share = min(0.9, alone_seconds / 3600 / HOURS)
        workers = math.ceil(sum(cpu_seconds.values()) / 3600 / HOURS / (1 - alone_share))
    return Plan(
        documents=documents,
        text_bytes=text_bytes,
        shard_bytes=shard_bytes,
        parts=parts,
        partitions=partitions,
        edges=edges,
        rounds=rounds,
        cpu_seconds=cpu_seconds,
        alone_seconds=alone_seconds,
        kept_bytes=joined + COPIES_BYTES * documents,
        moved_bytes=moved,
        worker_bytes=LIBRARIES_BYTES + round(held),
        workers=max(1, workers),
    )


def told(found: Plan, prices: Prices | None) -> list[str]:
    """The plan as lines."""
    cpu_hours = {stage: seconds / 3600 for stage, seconds in found.cpu_seconds.items()}
    moved = sum(found.moved_bytes.values())
    how = f"in {found.rounds} rounds" if found.rounds else "in one process"
    lines = [
        f"near duplicates of {found.documents:,} documents, {_bytes(found.text_bytes)} of text",
        "",
        f"  parts        {found.parts:,} of {_bytes(found.shard_bytes)}; in corpus.yaml: "
        f"shard_bytes: {found.shard_bytes // 10**6}MB",
        f"  partitions   {found.partitions:,}, which read {found.slices:.2g} slices of parts",
        f"  components   {found.edges:.2g} edges, {how}",
        f"  CPU hours    {sum(cpu_hours.values()):,.1f}: "
        + ", ".join(f"{stage} {hours:,.1f}" for stage, hours in cpu_hours.items()),
        f"  workers      {found.workers:,} cores: {found.hours:,.1f} hours, of which "
        f"{found.alone_seconds / 3600:,.1f} one alone",
        f"  memory       {_bytes(found.worker_bytes)} a worker, about",
        f"  shuffled     {_bytes(moved)}: "
        + ", ".join(f"{name} {_bytes(size)}" for name, size in found.moved_bytes.items() if size),
        f"  disk         {_bytes(found.kept_bytes)} stay, {_bytes(moved)} while it runs",
    ]
    if prices is None:
        lines.append("  cost         give --prices FILE, as in examples/prices.yaml")
    else:
        cores = sum(cpu_hours.values()) * prices.cpu_core_hour
        disk = (found.kept_bytes + moved) / 1e9 * prices.storage_gb_month
        lines.append(
            f"  cost         {cores:,.2f} {prices.currency} of cores, {disk:,.2f} a month of disk; "
            f"prices: {prices.source}"
        )
    lines += ["", "rates, measured on two cores and taken to hold:"]
    lines += [f"  {r.value:<9.3g} {r.unit:32} {r.source}" for r in RATES.values()]
    return lines


def _bytes(size: float) -> str:
    for unit, factor in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9)):
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size / 1e6:,.0f} MB"


def _rate(name: str) -> float:
    return RATES[name].value


def _is_coarse(found: Plan) -> bool:
    slices = found.slices * _rate("slice")
    return slices <= SLICES_SHARE * sum(found.cpu_seconds.values())
