"""MDS, which mosaicml-streaming reads: shards of samples, each a window of ids in `tokens`.

A shard, little-endian: number of samples (u32), byte offset of each and the end (u32), its settings
as JSON, then the samples: one array of fixed length and type needs no head of its own. `index.json`
names the shards. Read it with `shuffle=False`, and samples come in the order of the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from pipeline.files import replacing

SHARD_BYTES = 1 << 26
COLUMN = "tokens"


def write(folder: Path, batches: Iterable[np.ndarray], dtype: np.dtype[Any]) -> list[Path]:
    """Write windows, arrays [num_windows, length], as a folder; returns its files."""
    paths: list[Path] = []
    shards: list[dict[str, Any]] = []
    waiting: list[np.ndarray] = []
    for batch in batches:
        for window in batch.astype(dtype):
            if waiting and (len(waiting) + 1) * (window.nbytes + 4) > SHARD_BYTES:
                paths.append(_write_shard(folder, waiting, shards))
                waiting = []
            waiting.append(window)
    if waiting:
        paths.append(_write_shard(folder, waiting, shards))
    index = folder / "index.json"
    with replacing(index) as temporary:
        temporary.write_text(json.dumps({"version": 2, "shards": shards}, sort_keys=True))
    return [*paths, index]


def _write_shard(folder: Path, windows: list[np.ndarray], shards: list[dict[str, Any]]) -> Path:
    samples = np.stack(windows)
    size = samples.nbytes // len(windows)
    settings = {
        "version": 2,
        "format": "mds",
        "compression": None,
        "hashes": ["xxh3_64"],
        "size_limit": SHARD_BYTES,
        "column_names": [COLUMN],
        "column_encodings": [f"ndarray:{samples.dtype}:{samples.shape[1]}"],
        "column_sizes": [size],
    }
    head = json.dumps(settings, sort_keys=True).encode()
    begin = 4 + 4 * (len(windows) + 1) + len(head)
    offsets = (begin + size * np.arange(len(windows) + 1)).astype("<u4")
    data = b"".join(
        [
            np.uint32(len(windows)).astype("<u4").tobytes(),
            offsets.tobytes(),
            head,
            samples.astype(samples.dtype.newbyteorder("<")).tobytes(),
        ]
    )
    path = folder / f"shard.{len(shards):05d}.mds"
    with replacing(path) as temporary:
        temporary.write_bytes(data)
    file = {
        "basename": path.name,
        "bytes": len(data),
        "hashes": {"xxh3_64": xxhash.xxh3_64_hexdigest(data)},
    }
    shards.append(settings | {"samples": len(windows), "raw_data": file, "zip_data": None})
    return path
