"""Token files of datatrove, which nanotron reads: `<name>.ds`, ids and nothing else; `.ds.index`,
the end of each document in tokens (u64); `.ds.metadata`: tokenizer and bytes of an id, then tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from pipeline.files import replacing


def write(path: Path, chunks: Iterable[tuple[np.ndarray, np.ndarray]]) -> list[Path]:
    """Write (ids, tokens of each document) as `path`.ds; returns its files."""
    lengths, size = [np.zeros(0, np.int64)], 2
    data, index, metadata = (
        path.with_name(path.name + suffix) for suffix in (".ds", ".ds.index", ".ds.metadata")
    )
    with replacing(data) as temporary, open(temporary, "wb") as file:
        for ids, counts in chunks:
            size = ids.dtype.itemsize
            file.write(ids.astype(ids.dtype.newbyteorder("<"), copy=False).data)
            lengths.append(counts)
    ends = np.cumsum(np.concatenate(lengths))
    with replacing(index) as temporary:
        temporary.write_bytes(ends.astype("<u8").tobytes())
    with replacing(metadata) as temporary:
        total = int(ends[-1]) if len(ends) else 0
        temporary.write_text(f"tokenizer.json|{size}\n{total}\n{total:,} tokens\n")
    return [data, index, metadata]
