"""Tokenize: token ids of one part, row-aligned with its documents, as memory-mappable Arrow.

The counts stand apart (`tokens/<hash>/counts`), so that SQL never opens the ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import schema
from pipeline.files import part_name, replacing

if TYPE_CHECKING:
    from pipeline.tokenizer import Encoder
    from pipeline.transforms.sweep import Stage


def outputs(root: Path, tokenizer_hash: str, part: int) -> list[Path]:
    folder = root / "tokens" / tokenizer_hash
    return [folder / part_name(part, "arrow"), folder / "counts" / part_name(part)]


def tokenize(root: Path, encoder: Encoder, part: int) -> Stage:
    """Write the ids and the counts of a part."""
    table = schema.tokens(pa.from_numpy_dtype(encoder.dtype))
    ids_path, counts_path = outputs(root, encoder.hash, part)
    totals = {"documents": 0, "tokens": 0, "special_literals": 0}
    with (
        replacing(ids_path) as ids_file,
        replacing(counts_path) as counts_file,
        pa.OSFile(str(ids_file), "wb") as sink,
        pa.ipc.new_file(sink, table) as ids_writer,
        pq.ParquetWriter(counts_file, schema.TOKEN_COUNTS, compression="zstd") as counts_writer,
    ):
        while (batch := (yield)) is not None:
            ids, offsets, literals = encoder.encode(batch.texts.array)
            lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(ids))
            ids_writer.write_batch(pa.RecordBatch.from_arrays([lists], schema=table))
            counts = [pa.array(np.diff(offsets)), pa.array(literals)]
            counts_writer.write_batch(
                pa.RecordBatch.from_arrays(counts, schema=schema.TOKEN_COUNTS),
                row_group_size=len(literals),
            )
            totals["documents"] += len(literals)
            totals["tokens"] += len(ids)
            totals["special_literals"] += int(literals.sum())
    return totals
