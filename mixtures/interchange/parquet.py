"""Parquet for Hugging Face `datasets`: a row a window, with where its documents begin."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mixtures.batch import Batch
from pipeline.files import replacing

FILE_WINDOWS = 65_536
SCHEMA = pa.schema([("input_ids", pa.list_(pa.int32())), ("document_starts", pa.list_(pa.int32()))])


def write(folder: Path, batches: Iterable[Batch]) -> list[Path]:
    """Write windows as `train-00000.parquet` ...; returns the files, in the order of the run."""
    paths: list[Path] = []
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(_rows(batch))
        if sum(map(len, waiting)) >= FILE_WINDOWS:
            paths.append(_write_file(folder, len(paths), waiting))
            waiting = []
    if waiting:
        paths.append(_write_file(folder, len(paths), waiting))
    return paths


def _rows(batch: Batch) -> pa.RecordBatch:
    num, length = batch.tokens.shape
    offsets = (np.arange(num + 1) * length).astype(np.int32)
    new = np.diff(batch.documents, axis=1, prepend=-1) > 0
    borders = np.append(0, np.cumsum(new.sum(axis=1))).astype(np.int32)
    columns = [
        pa.ListArray.from_arrays(offsets, pa.array(batch.tokens.astype(np.int32).ravel())),
        pa.ListArray.from_arrays(borders, pa.array(np.nonzero(new)[1].astype(np.int32))),
    ]
    return pa.record_batch(columns, schema=SCHEMA)


def _write_file(folder: Path, number: int, rows: list[pa.RecordBatch]) -> Path:
    path = folder / f"train-{number:05d}.parquet"
    with replacing(path) as temporary:
        pq.write_table(pa.Table.from_batches(rows), temporary, compression="zstd")
    return path
