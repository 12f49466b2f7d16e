"""Our loader, a plain gather and other loaders over the same tokens, in turn.

    python benchmarks/loader_peers.py [--tokens N] [--seconds S] [--rounds N] [--peers NAME ...]

One process, batches of 8 windows of 2,048 as int64, shuffled; `documents` is ours with the borders
of documents. Each figure is the median of alternating rounds, each in a fresh process; `cold` drops
the pages of the files first (posix_fadvise). Peers get environments of their own at the first call
(pip, 2 GB; BENCH_PEERS names a folder that has them). Then, of ours alone: a first batch from
10,000 shards, and at step 1e6; memory over two epochs of them.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from environments import environment
from loader_peer import BATCH, HERE, LENGTH, megabytes

from mixtures.loader import Loader
from mixtures.packed import Packed, Packing
from mixtures.plan import Plan, PlannedSource
from pipeline import schema
from pipeline.files import part_name, write_sealed

REQUIREMENTS = {
    "streaming": ("torch==2.13.0", "mosaicml-streaming==0.13.0"),
    "loaders": ("torch==2.13.0", "litdata==0.2.76", "datasets==5.2.0"),
}
PEERS = {"streaming": "streaming", "litdata": "loaders", "datasets": "loaders"}
DOCUMENT = 700  # tokens
WINDOWS_PER_BATCH, WINDOWS_PER_PART = 256, 4_096
SHARDS, STEP = 10_000, 1_000_000
SCRIPT = str(Path(__file__).with_name("loader_peer.py"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/loader_peers.py")
    parser.add_argument("--tokens", type=int, default=50_000_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, options.tokens)
        pythons = dict.fromkeys(HERE, sys.executable)
        for peer in options.peers:
            pythons[peer] = environment(PEERS[peer], REQUIREMENTS[PEERS[peer]])
            call(pythons[peer], "build", peer, folder)
        compare(pythons, folder, options.rounds, options.seconds)
        plans = {
            "few": pickle.loads((folder / "plan.pickle").read_bytes()),  # ours
            f"{SHARDS:,}": many_parts(folder),
        }
        first_batches(plans)
        memory(plans)
    return 0


def against_gather(num_bytes: int, folder: Path) -> None:
    """Of `benchmarks/run.py`: ours and the plain gather."""
    folder = folder / "loader_peers"
    folder.mkdir()
    make(folder, 4_000_000 + 2 * num_bytes)
    rounds, seconds = (3, 3.0) if num_bytes > 4_000_000 else (1, 0.5)
    compare(dict.fromkeys(HERE, sys.executable), folder, rounds, seconds)


def compare(pythons: dict[str, str], folder: Path, rounds: int, seconds: float) -> None:
    for cold in (False, True):
        found: dict[str, list[dict[str, float]]] = {peer: [] for peer in pythons}
        for _ in range(rounds):
            for peer, python in pythons.items():
                if cold:
                    drop_pages(folder)
                found[peer].append(call(python, "read", peer, folder, seconds))
        print(f"\n{'cold' if cold else 'warm'}, load {os.getloadavg()[0]:.0f}", flush=True)
        ours = {name: median(found["ours"], name) for name in ("rate", "cpu_rate")}
        for peer, rows in found.items():
            rate, cpu_rate = median(rows, "rate"), median(rows, "cpu_rate")
            print(
                f"  {peer:<10}{rate:7.1f} Mtok/s, {cpu_rate:6.1f} a CPU-s: ours is "
                f"{ours['rate'] / rate:5.2f} and {ours['cpu_rate'] / cpu_rate:5.2f} times it; "
                f"first batch {median(rows, 'first'):.2f} s; memory "
                f"{median(rows, 'early_mb'):.0f} to {median(rows, 'late_mb'):.0f} MB",
                flush=True,
            )


def median(rows: list[dict[str, float]], name: str) -> float:
    return statistics.median(row[name] for row in rows)


def call(python: str, what: str, peer: str, folder: Path, seconds: float = 0) -> dict[str, float]:
    own = folder / "tmp" / peer  # litdata and streaming keep things beside their data
    own.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(own), "TMPDIR": str(own)}
    if python != sys.executable:
        environ.pop("PYTHONPATH", None)
    command = [python, SCRIPT, what, peer, str(folder), str(seconds)]
    run = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{peer}: {run.stderr[-2_000:]}")
    return json.loads(run.stdout.splitlines()[-1]) if what == "read" else {}


def drop_pages(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def make(folder: Path, tokens: int) -> None:
    """tokens.bin, and the same ids as packed parts, with plan.pickle."""
    num = tokens // LENGTH
    flat = np.random.default_rng(1).integers(0, 50_000, num * LENGTH + 1).astype(np.uint16)
    flat.tofile(folder / "tokens.bin")
    firsts = range(0, num, WINDOWS_PER_PART)
    sizes = tuple(min(WINDOWS_PER_PART, num - first) for first in firsts)
    for number, (first, size) in enumerate(zip(firsts, sizes, strict=True)):
        write_part(folder / part_name(number, "arrow"), flat, range(first, first + size))
    (folder / "plan.pickle").write_bytes(pickle.dumps(plan_of(folder, sizes)))


def write_part(path: Path, flat: np.ndarray, windows: range) -> None:
    kind = schema.windows(pa.uint16(), LENGTH)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, kind) as writer:
        for at in range(windows.start, windows.stop, WINDOWS_PER_BATCH):
            rows = range(at, min(at + WINDOWS_PER_BATCH, windows.stop))
            ids = [flat[row * LENGTH : (row + 1) * LENGTH + 1] for row in rows]
            starts = [
                np.append(0, np.arange(-row * LENGTH % DOCUMENT or DOCUMENT, LENGTH + 1, DOCUMENT))
                for row in rows
            ]
            names = [[bytes([1]) * 16] * len(begins) for begins in starts]
            columns = [
                pa.FixedSizeListArray.from_arrays(pa.array(np.concatenate(ids)), LENGTH + 1),
                pa.array(starts, pa.list_(pa.int32())),
                pa.array(names, pa.list_(schema.HASH)),
            ]
            writer.write_batch(pa.record_batch(columns, schema=kind))


def plan_of(folder: Path, windows: tuple[int, ...]) -> Plan:
    """A plan of one source, for ever; its folder has a manifest."""
    packing = Packing(1, LENGTH, "bench", "")
    tokens = sum(windows) * LENGTH
    packed = Packed("bench", packing, 1, tokens, tokens, 0, windows)
    write_sealed(folder / "manifest.json", {"selection": packed.selection, "files": {}})
    source = PlannedSource(
        name="bench", corpus="bench", folder=str(folder), selection=packed.selection,
        windows=windows, parts_per_group=len(windows), claimed=1, copies=0, near=0, documents=1,
        num_tokens=tokens, num_bytes=0, requested=1.0, realised=1.0, max_epochs=1e9, epochs=1.0,
    )  # fmt: skip
    return Plan(
        tokens=2 * STEP * BATCH * LENGTH, sequence_length=LENGTH, seed=7, tokenizer="bench",
        tokenizer_file="", vocab_size=50_000, bos_id=None, eos_id=0, heldout=0, sources=(source,),
    )  # fmt: skip


def many_parts(folder: Path) -> Plan:
    """A plan of SHARDS parts of 16 windows."""
    many = folder / "many"
    many.mkdir()
    one = many / part_name(0, "arrow")
    write_part(one, np.fromfile(folder / "tokens.bin", np.uint16), range(16))
    for number in range(1, SHARDS):
        shutil.copyfile(one, many / part_name(number, "arrow"))
    return plan_of(many, (16,) * SHARDS)


def first_batches(plans: dict[str, Plan]) -> None:
    """Seconds of a first batch, from few and from many shards, at the first step and at a late one:
    the least of five new loaders, in turn."""
    print(f"\nfirst batch of a new loader, load {os.getloadavg()[0]:.0f}")
    for name, plan in plans.items():
        seconds: dict[int, list[float]] = {0: [], STEP: []}
        for _ in range(5):
            for step, taken in seconds.items():
                began = time.perf_counter()
                Loader(plan).batch(step * BATCH, BATCH)
                taken.append(time.perf_counter() - began)
        told = "; ".join(
            f"step {step:,}: {1e3 * min(taken):.1f} ms, at most {1e3 * max(taken):.0f}"
            for step, taken in seconds.items()
        )
        print(f"  {name} shards: {told}", flush=True)


def memory(plans: dict[str, Plan]) -> None:
    """MB of the process's own before, and after a tenth, half and all of an epoch, and of two."""
    print("\nmemory")
    for name, plan in plans.items():
        loader, epoch = Loader(plan), plan.sources[0].num_windows
        ends = [epoch // 10, epoch // 2, epoch, 2 * epoch]
        told, begin = [megabytes()], 0
        for end in ends:
            for at in range(begin, end - BATCH + 1, BATCH):
                loader.batch(at, BATCH)
            told.append(megabytes())
            begin = end
        print(f"  {name} shards: {', '.join(map(str, told))} MB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
