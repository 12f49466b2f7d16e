"""Measure: one signal group of one part, row-aligned with its documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from filters.segments import Texts
from pipeline.corpus import part_name
from pipeline.files import replacing
from pipeline.tables import column

if TYPE_CHECKING:
    from filters.signals import Group


def outputs(root: Path, group: str, part: int) -> list[Path]:
    return [root / "signals" / group / part_name(part)]


def measure(root: Path, group: str, table: Group, part: int) -> dict[str, Any]:
    """Write signals/<group>/part; `lang` comes from the language group where that stands before."""
    columns = pa.schema([(name, signal.type) for name, signal in table.columns.items()])
    documents = pq.ParquetFile(root / "documents" / part_name(part))
    languages_path = root / "signals" / "language" / part_name(part)
    languages = None if group == "language" else pq.ParquetFile(languages_path)
    rows = 0
    with (
        replacing(outputs(root, group, part)[0]) as temporary,
        pq.ParquetWriter(temporary, columns, compression="zstd") as writer,
    ):
        for i in range(documents.num_row_groups):
            texts = column(documents, i, "text")
            lang = column(languages, i, "lang") if languages else pa.array([""] * len(texts))
            measured = table.measure(Texts(texts), lang)
            arrays = [pa.array(measured[f.name]).cast(f.type) for f in columns]
            writer.write_batch(
                pa.RecordBatch.from_arrays(arrays, schema=columns), row_group_size=len(texts)
            )
            rows += len(texts)
    return {"documents": rows}
