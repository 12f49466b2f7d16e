"""Packed Arrow files are read as pyarrow's own reader reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline import schema
from pipeline.tables import names_of, read_batch, spread, write_batch


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


def test_what_holds_for_a_first_holds_for_its_copies() -> None:
    rows, which = spread(np.array([0, 0, 3]), np.array([0, 1, 0, 3]))
    assert rows.tolist() == [0, 0, 2, 2, 3]
    assert which.tolist() == [0, 1, 0, 1, 2]
    rows, which = spread(np.array([], np.int64), np.array([0, 0]))
    assert (rows.tolist(), which.tolist()) == ([], [])


def test_hashes_compare_as_sixteen_bytes() -> None:
    hashes = pa.array([b"b" * 16, b"a" * 15 + b"\0", b"a" * 16], pa.binary(16))
    assert names_of(hashes.slice(1)).tolist() == [b"a" * 15, b"a" * 16]
    assert names_of(pa.chunked_array([hashes, hashes])).argsort(kind="stable").tolist() == [
        *(1, 4, 2, 5, 0, 3)
    ]
    assert len(names_of(hashes.slice(3))) == 0
