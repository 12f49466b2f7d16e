"""Edit: what one editor would change in the texts of a part; the texts stay as they are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from filters.edits import fault
from pipeline import schema
from pipeline.files import part_name, replacing

if TYPE_CHECKING:
    from filters.editors import Editor
    from filters.edits import Edits
    from pipeline.transforms.sweep import Stage


def outputs(root: Path, name: str, part: int) -> list[Path]:
    return [root / "edits" / name / part_name(part)]


def edit(root: Path, name: str, editor: Editor, part: int) -> Stage:
    """Write edits/<name>/part.

    Raises:
        ValueError: the editor found what is no edit of a text; names it.
    """
    totals = Counter(documents=0, edited_documents=0, removed_bytes=0, added_bytes=0)
    with (
        replacing(outputs(root, name, part)[0]) as temporary,
        pq.ParquetWriter(temporary, schema.EDITS, compression="zstd") as writer,
    ):
        while (batch := (yield)) is not None:
            edits = editor.find(batch.texts, batch.columns)
            if wrong := fault(batch.texts, edits):
                raise ValueError(f"editor {name!r}, part {part}: {wrong}")
            if len(edits):
                writer.write_batch(rows_of(batch.columns["id"], edits))
            totals.update(counted(edits), documents=len(batch.texts))
            del edits
    return dict(totals)


def rows_of(ids: pa.Array, edits: Edits) -> pa.RecordBatch:
    """Edits of documents with these ids, as they are stored."""
    columns = [ids.take(pa.array(edits.rows)), pa.array(edits.starts)]
    columns += [pa.array(edits.ends), edits.kinds, edits.replacements]
    return pa.RecordBatch.from_arrays(columns, schema=schema.EDITS)


def counted(edits: Edits) -> dict[str, int]:
    """Counters; of each kind how many, as `kind.email`."""
    kinds = {
        f"kind.{row['values']}": row["counts"] for row in edits.kinds.value_counts().to_pylist()
    }
    return {
        "edited_documents": len(set(edits.rows.tolist())),
        "removed_bytes": int((edits.ends - edits.starts).sum()),
        "added_bytes": pc.sum(pc.binary_length(edits.replacements)).as_py() or 0,
        **kinds,
    }
