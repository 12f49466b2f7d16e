"""Measure: one signal group of one part, row-aligned with its documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.files import part_name, replacing
from pipeline.tables import without

if TYPE_CHECKING:
    from filters.signals import Group
    from pipeline.transforms.sweep import Batch, Stage


def outputs(root: Path, group: str, part: int) -> list[Path]:
    return [root / "signals" / group / part_name(part)]


def measure(root: Path, group: str, table: Group, part: int) -> Stage:
    """Write signals/<group>/part."""
    columns = pa.schema([(name, signal.type) for name, signal in table.columns.items()])
    rows = 0
    with (
        replacing(outputs(root, group, part)[0]) as temporary,
        pq.ParquetWriter(temporary, columns, compression="zstd") as writer,
    ):
        while (batch := (yield)) is not None:
            writer.write_batch(_measured(batch, table, columns), row_group_size=len(batch.texts))
            rows += len(batch.texts)
    return {"documents": rows}


def _measured(batch: Batch, table: Group, columns: pa.Schema) -> pa.RecordBatch:
    measured = table.measure(batch.texts, batch.columns)
    arrays = [pa.array(measured[f.name]).cast(f.type) for f in columns]
    return without(pa.RecordBatch.from_arrays(arrays, schema=columns), batch.forgotten)
