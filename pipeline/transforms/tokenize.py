"""Tokenize: token ids of one part, row-aligned with its documents, as memory-mappable Arrow.

A part is encoded in a thread of its own. fastokens remembers words, for each thread up to 80 MB of
them; those of a part are 20 to 50 MB, and go with its thread.

The counts stand apart (`tokens/<hash>/counts`), so that SQL never opens the ids.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import schema
from pipeline.files import part_name, replacing
from pipeline.tables import without

if TYPE_CHECKING:
    from pipeline.encoder import Encoder
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
        ThreadPoolExecutor(1) as thread,
        replacing(ids_path) as ids_file,
        replacing(counts_path) as counts_file,
        pa.OSFile(str(ids_file), "wb") as sink,
        pa.ipc.new_file(sink, table) as ids_writer,
        pq.ParquetWriter(counts_file, schema.TOKEN_COUNTS, compression="zstd") as counts_writer,
    ):
        while (batch := (yield)) is not None:
            lists, counts = thread.submit(_encoded, batch.texts.array, encoder).result()
            lists, counts = without(lists, batch.forgotten), without(counts, batch.forgotten)
            ids_writer.write_batch(pa.RecordBatch.from_arrays([lists], schema=table))
            counts_writer.write_batch(counts, row_group_size=len(counts))
            totals["documents"] += len(counts)
            totals["tokens"] += pc.sum(counts["num_tokens"], min_count=0).as_py()
            totals["special_literals"] += pc.sum(
                counts["num_special_literals"], min_count=0
            ).as_py()
            del lists
    return totals


def _encoded(texts: pa.Array, encoder: Encoder) -> tuple[pa.LargeListArray, pa.RecordBatch]:
    """Ids and counts of each text."""
    ids, offsets, literals = encoder.encode(texts)
    counts = [pa.array(np.diff(offsets)), pa.array(literals)]
    return (
        pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(ids)),
        pa.RecordBatch.from_arrays(counts, schema=schema.TOKEN_COUNTS),
    )
