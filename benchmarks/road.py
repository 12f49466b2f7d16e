"""The whole road, JSONL to tokens, as a user walks it: `assay prepare` with one worker.

Start-up is the same command on a few documents with kernels compiled; first compilation is what it
costs more with an empty cache. The rate is that of the text alone: start-up is taken off.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import yaml
from measure import Cost, run
from texts import lines

from pipeline.corpus import manifest

ASSAY = str(Path(sys.executable).with_name("assay"))
FEW_BYTES = 20_000
TOKENIZER = ("--vocab-size", "8000", "--sample", "4MB")


def road(num_bytes: int, folder: Path) -> None:
    """Print the figures; leaves the corpus `all` in `folder`, for the loader's benchmark."""
    few, whole = inputs(folder, "few", FEW_BYTES), inputs(folder, "all", num_bytes)
    output = str(folder / "tokenizer.json")
    run([ASSAY, "tokenizer", "train", str(whole), *TOKENIZER, "--output", output])
    cold = prepare(few, folder)
    (folder / "few").rename(folder / "few-cold")
    warm, cost = prepare(few, folder), prepare(whole, folder)

    size = manifest(folder / "all")["stages"]["ingest"]["totals"]["bytes"] / 1e6
    work = cost.cpu_seconds - warm.cpu_seconds
    # Start-up itself varies by a third; a difference below that says nothing.
    after = f"{size / work:7.1f}" if work > 0.3 * warm.cpu_seconds else "unclear"
    print(f"\nthe whole road, JSONL to tokens, 1 worker: {size:.1f} MB of text")
    print(f"  start-up          {warm.cpu_seconds:7.1f} CPU-s, {warm.wall_seconds:.1f} s")
    print(f"  first compilation {cold.cpu_seconds - warm.cpu_seconds:7.1f} CPU-s more")
    print(f"  everything        {cost.cpu_seconds:7.1f} CPU-s, {cost.wall_seconds:.1f} s")
    print(f"  rate              {after} MB/CPU-s, start-up taken off")
    print(f"  rate              {size / cost.cpu_seconds:7.1f} MB/CPU-s with start-up")
    print(f"  peak memory       {cost.peak_bytes / 1e6:7.0f} MB over all processes", flush=True)


def inputs(folder: Path, name: str, num_bytes: int) -> Path:
    """A corpus.yaml over as much text of each language, and its files."""
    sources = []
    for language in ("en", "zh"):
        path = folder / f"{name}-{language}.jsonl"
        path.write_bytes(b"".join(lines(language, num_bytes)))
        sources.append({"source": language, "files": str(path)})
    settings = {"inputs": sources, "tokenizer": "tokenizer.json", "output": name}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def prepare(settings: Path, folder: Path) -> Cost:
    """`assay prepare`, with a cache of compiled kernels that begins empty."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "compiled")}
    return run([ASSAY, "prepare", str(settings), "--workers", "1"], environment)
