"""Megatron's indexed dataset: `<name>.bin` holds ids, `<name>.idx` where each document stands.

The index, little-endian: a mark, version 1 (u64), the type of ids (u8), documents (u64), the same
and one (u64), tokens of each (i32), byte offset of each (i64), the number of each, with an end
(i64): one "sequence" of Megatron is one document here.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.files import replacing
from pipeline.readers.token_files import HEAD, MARK, TYPES

VERSION = 1
CODES: dict[np.dtype[Any], int] = {np.dtype(name): code for code, name in TYPES.items()}
OTHERWISE = np.dtype(np.int32)  # for uint32, which Megatron has not


def write(path: Path, chunks: Iterable[tuple[np.ndarray, np.ndarray]]) -> list[Path]:
    """Write (ids, tokens of each document) as `path`.bin and .idx; returns both."""
    lengths = [np.zeros(0, np.int64)]
    dtype: np.dtype[Any] = np.dtype(np.uint16)
    data, index = path.with_name(path.name + ".bin"), path.with_name(path.name + ".idx")
    with replacing(data) as temporary, open(temporary, "wb") as file:
        for ids, counts in chunks:
            dtype = ids.dtype if ids.dtype in CODES else OTHERWISE
            file.write(np.ascontiguousarray(ids, dtype).data)
            lengths.append(counts)
    counts = np.concatenate(lengths)
    offsets = (np.cumsum(counts) - counts) * dtype.itemsize
    with replacing(index) as temporary, open(temporary, "wb") as file:
        file.write(MARK + HEAD.pack(VERSION, CODES[dtype], len(counts), len(counts) + 1))
        for column, kind in ((counts, "<i4"), (offsets, "<i8"), (range(len(counts) + 1), "<i8")):
            file.write(np.asarray(column).astype(kind).tobytes())
    return [data, index]
