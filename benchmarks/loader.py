"""How fast batches come out of packed windows, in millions of tokens per second."""

from __future__ import annotations

import time
from pathlib import Path

import yaml

from mixtures.loader import Loader
from mixtures.plan import make_plan

SEQUENCE_LENGTH = 2_048
BATCH = 8  # windows
TOKENS_PER_BYTE = 5  # about ten epochs: long enough to time


def loader(num_bytes: int, folder: Path) -> None:
    """Print the figures of passes and of jumps, over the corpus that benchmark `road` left."""
    mixture = folder / "mixture.yaml"
    settings = {
        "corpora": {"all": str(folder / "all")},
        "sequence_length": SEQUENCE_LENGTH,
        "unique": "none",
        "sources": {"all": {"from": "all", "max_epochs": 1_000}},
    }
    mixture.write_text(yaml.safe_dump(settings))
    begin = time.perf_counter()
    reader = Loader(make_plan(mixture, TOKENS_PER_BYTE * num_bytes))
    planned = time.perf_counter() - begin
    positions = range(0, len(reader) - BATCH, BATCH)
    first, again = _pass(reader, positions), _pass(reader, positions)
    jumps = positions[:: max(1, len(positions) // 100)]
    begin = time.perf_counter()
    for position in reversed(jumps):
        reader.batch(position, 1)
    resumed = (time.perf_counter() - begin) / len(jumps)

    print(f"\nloader: {len(reader):,} windows of {SEQUENCE_LENGTH:,} tokens, {BATCH} a batch")
    print(f"  select, plan, pack {planned:7.2f} s")
    print(f"  first pass         {first:7.1f} Mtok/s")
    print(f"  second pass        {again:7.1f} Mtok/s")
    print(f"  a window elsewhere {1e3 * resumed:7.2f} ms", flush=True)


def _pass(reader: Loader, positions: range) -> float:
    begin = time.perf_counter()
    for position in positions:
        reader.batch(position, BATCH)
    return len(positions) * BATCH * SEQUENCE_LENGTH / (time.perf_counter() - begin) / 1e6
