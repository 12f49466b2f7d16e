from __future__ import annotations

import errno
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.readers import Bad, Record, parquet
from pipeline.readers.formats import cut, read
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


def test_an_id_that_is_no_number_is_kept_as_json_writes_it(tmp_path: Path) -> None:
    """pandas writes a missing id among numbers as NaN."""
    found = of(tmp_path, text=["a", "b", "c"], id=[float("nan"), 1.0, None])
    ids = [item.fields.get("source_id") for item in found if isinstance(item, Record)]
    assert ids == ["NaN", "1.0", None]


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
    assert (found.offset, found.reason) == (-1, "bad_parquet")
    assert found.detail.startswith("in.parquet: not readable: ")
    path.write_bytes(b"")
    assert items(path) == []


def test_each_unreadable_piece_has_a_place_of_its_own(tmp_path: Path) -> None:
    """A file that breaks after it was cut: else its rejects would have one id, that of row 0."""
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": list("abcd")}), path, row_group_size=1)
    pieces = cut(str(path), path.name, 1)
    assert pieces is not None
    path.write_bytes(path.read_bytes()[:-10])
    found = [item for piece in pieces for item in read(piece, SOURCE, "")]
    assert [item.offset for item in found] == [-1, -2, -3, -4]


def test_an_error_of_the_disk_is_no_reject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one failed read would turn a whole file into one row of `rejects`."""
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["a"] * 1000}), path)
    (piece,) = parquet.cut(str(path), path.name, 0, 1)
    monkeypatch.setattr(parquet, "open_file", lambda _: io.BufferedReader(BrokenDisk()))
    with pytest.raises(OSError, match="Input/output error"):
        parquet.cut(str(path), path.name, 0, 1)
    with pytest.raises(OSError, match="Input/output error"):
        list(read(piece, SOURCE, ""))


class BrokenDisk(io.RawIOBase):
    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return 1000

    def readinto(self, buffer: object) -> int:
        raise OSError(errno.EIO, "Input/output error")


def break_page(path: Path, group: int) -> int:
    """Overwrite the header of the first page of `text`; returns the bytes of its row group."""
    row_group = pq.read_metadata(path).row_group(group)
    raw = bytearray(path.read_bytes())
    at = row_group.column(0).data_page_offset
    raw[at : at + 8] = b"\xff" * 8
    path.write_bytes(raw)
    return int(row_group.total_byte_size)


@pytest.mark.parametrize("shard_bytes", [1, 1 << 30])
def test_a_broken_row_group_costs_itself(tmp_path: Path, shard_bytes: int) -> None:
    path = tmp_path / "in.parquet"
    rows = pa.table({"text": [f"text {i}" for i in range(100)]})
    pq.write_table(rows, path, row_group_size=30, use_dictionary=False)
    size = break_page(path, 1)
    found = items(path, shard_bytes=shard_bytes)
    assert [i.offset for i in found] == [*range(31), *range(60, 100)]
    assert [i.text for i in found if isinstance(i, Record)] == [
        f"text {i}" for i in (*range(30), *range(60, 100))
    ]
    (broken,) = (i for i in found if isinstance(i, Bad))
    assert (broken.offset, broken.num_bytes, broken.reason) == (30, size, "bad_parquet")
    assert broken.detail.startswith("30 rows from row 30 of row group 1 not readable: ")


def test_what_stands_before_a_broken_page_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    rows = pa.table({"text": [f"text {i:05}" for i in range(6000)]})
    pq.write_table(
        rows,
        path,
        use_dictionary=False,
        compression="none",
        write_statistics=False,
        data_page_size=1,
    )
    raw = path.read_bytes()
    at = raw.index(b"text 04096") - 4  # the length of the first value of the fifth page of 1,024
    path.write_bytes(raw[: at - 12] + b"\xff" * 12 + raw[at:])  # the end of its header
    found = items(path)
    assert [i.offset for i in found] == list(range(4097))
    assert [i.text for i in found[:-1] if isinstance(i, Record)] == rows["text"].to_pylist()[:4096]
    assert isinstance(found[-1], Bad)
    assert found[-1].detail.startswith("1,904 rows from row 4096 of row group 0 not readable: ")
