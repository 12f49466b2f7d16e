"""Packed Arrow files are read as pyarrow's own reader reads them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pipeline import schema
from pipeline.tables import read_batch, write_batch


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_batch_comes_back_as_pyarrow_reads_it(tmp_path: Path, rows: int) -> None:
    columns = [
        pa.array([7, 7, 9][:rows], pa.int64()),
        pa.array([b"a" * 16, b"b" * 16, b"c" * 16][:rows], schema.HASH),
        pa.array([[1, 2], [], [3]][:rows], pa.large_list(pa.uint64())),
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema.CANDIDATES)
    path = tmp_path / "part-00000.arrow"
    write_batch(path, batch)
    found = read_batch(path, schema.CANDIDATES)
    with pa.ipc.open_file(path) as reader:
        assert found.equals(batch)
        assert found.equals(reader.get_batch(0))
        assert reader.num_record_batches == 1
