from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.readers import Bad, Record, parquet
from pipeline.readers.formats import read
from pipeline.settings import Input

SOURCE = Input(source="t", files="*.parquet", keep=("n",))


def items(path: Path, source: Input = SOURCE, shard_bytes: int = 1 << 30) -> list[Record | Bad]:
    pieces = parquet.cut(str(path), path.name, path.stat().st_size, shard_bytes)
    return [item for piece in pieces for item in read(piece, source, "resiliparse")]


def of(tmp_path: Path, **columns: object) -> list[Record | Bad]:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(columns), path)
    return items(path)


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_rows(tmp_path: Path, type_: pa.DataType) -> None:
    text = pa.array(["水。", None, "", "b"], pa.string()).cast(type_)
    found = of(tmp_path, text=text, id=[1, 2, 3, 3], n=[[1], None, None, None], other=[0, 0, 0, 0])
    assert found == [
        Record(0, 6, "水。", {"source_id": "1", "meta": {"n": "[1]"}}),
        Bad(1, 0, "null_text", "field 'text' is null", '{"text":null,"id":2,"n":null}'),
        Record(2, 0, "", {"source_id": "3", "meta": {}}),
        Record(3, 1, "b", {"source_id": "3", "meta": {}}),
    ]


def test_invalid_utf8_costs_its_row(tmp_path: Path) -> None:
    raw = pa.array([b"a", b"\xff", b"c"], pa.binary())
    text = pa.StringArray.from_buffers(3, *raw.buffers()[1:])
    found = of(tmp_path, text=text)
    assert [(i.offset, i.text if isinstance(i, Record) else i.reason) for i in found] == [
        (0, "a"),
        (1, "bad_utf8"),
        (2, "c"),
    ]


def test_a_missing_or_wrong_column_is_one_reject_a_row(tmp_path: Path) -> None:
    found = of(tmp_path, content=["a", "b"])
    assert [(i.offset, i.reason, i.detail) for i in found if isinstance(i, Bad)] == [
        (0, "missing_text", "no field 'text'; the record has 'content'"),
        (1, "missing_text", "no field 'text'; the record has 'content'"),
    ]
    found = of(tmp_path, text=[3])
    assert [(i.reason, i.detail) for i in found if isinstance(i, Bad)] == [
        ("bad_text_type", "field 'text' is int, not a string")
    ]


def test_pieces_are_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": [str(i) for i in range(100)]}), path, row_group_size=30)
    whole = items(path)
    assert [(i.offset, i.text) for i in whole if isinstance(i, Record)] == [
        (i, str(i)) for i in range(100)
    ]
    pieces = parquet.cut(str(path), "in.parquet", 0, 1)
    assert [(p.begin, p.end) for p in pieces] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert items(path, shard_bytes=1) == whole


def test_a_broken_file_is_one_reject(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["a"] * 1000}), path)
    path.write_bytes(path.read_bytes()[:-10])
    (found,) = items(path)
    assert isinstance(found, Bad)
    assert (found.offset, found.reason) == (0, "bad_parquet")
    assert found.detail.startswith("in.parquet: not readable from row 0: ")
    path.write_bytes(b"")
    assert items(path) == []
