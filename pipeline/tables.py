"""Reading parts of tables: one column of one row group at a time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq


def column(file: pq.ParquetFile, row_group: int, name: str) -> pa.Array:
    """One column of one row group as one array."""
    chunked = file.read_row_group(row_group, columns=[name]).column(0)
    return chunked.combine_chunks() if chunked.num_chunks != 1 else chunked.chunk(0)
