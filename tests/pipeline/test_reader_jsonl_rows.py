from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.readers import Bad, Piece, Record, Rows, jsonl, jsonl_rows
from pipeline.readers.formats import read, read_rows
from pipeline.readers.streams import BrokenStream
from pipeline.settings import Input
from pipeline.shards import Shard
from pipeline.transforms import ingest as stage

SOURCE = Input(source="s", files="x", keep=("n", "url", "note"))

TEXTS = st.text(alphabet='水火a\r\n é😀\\"\ufffd\x85', max_size=12)
VALUES = st.one_of(TEXTS, st.integers(), st.sampled_from([None, True, 1.5, [1], "https://a.b/c"]))
WHOLE = st.builds(
    lambda text, rest, plain: json.dumps({"text": text, **rest}, ensure_ascii=plain).encode(),
    TEXTS,
    st.dictionaries(st.sampled_from(["id", "url", "n", "note", "x"]), VALUES),
    st.booleans(),
)
PIECES = [
    *(b'"', b"\\", b"\\u", b"\\ud83d", b",", b":", b"{", b"}", b"[" * 2_000, b'"text":"b",'),
    *(b'"\\u0074ext":"b",', b'"id":NaN,', b'"n":-0,', b"9" * 19, b"9" * 400, b"1e5", b"null"),
    *(b"\0", b"\r", b"\x1f", b"\xff", b"\xed\xa0\x80", b"\xe6\xb0", b"\xef\xbb\xbf"),
]
SPLICED = st.builds(
    lambda line, at, piece, gone: line[:at] + piece + line[at + gone :],
    WHOLE,
    st.integers(0, 60),
    st.sampled_from(PIECES),
    st.integers(0, 3),
)
LINES = st.one_of(
    WHOLE,
    SPLICED,
    st.sampled_from(
        [b"", b"\r", b"{", b'{"text":"\xff"}', b"3", b'{"text":null}', b"\0", b'{"a":1}\r']
    ),
)


def made(folder: Path, pieces: list[Piece], source: Input) -> tuple[dict[str, object], list[bytes]]:
    """Counters and bytes of the tables that ingest makes."""
    shard = Shard(0, "s", tuple(pieces), text_bytes=0, version="")
    counters = stage.ingest(folder, shard, source, "", ("empty", "not_text"), None)
    return counters, [path.read_bytes() for path in stage.outputs(folder, 0)]


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(LINES, max_size=20),
    last=st.booleans(),
    packed=st.booleans(),
    block_bytes=st.integers(1, 400),
    shard_bytes=st.integers(1, 300),
)
def test_the_same_tables_as_record_by_record(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[bytes],
    last: bool,
    packed: bool,
    block_bytes: int,
    shard_bytes: int,
) -> None:
    folder = tmp_path_factory.mktemp("p")
    data = b"\n".join(rows) + (b"\n" if last else b"")
    path = folder / "in.jsonl"
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    pieces = jsonl.cut(str(path), path.name, len(data), 1 << 20 if packed else shard_bytes)
    assert pieces is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl_rows, "BLOCK_BYTES", block_bytes)
        fast = made(folder, pieces, SOURCE)
        patch.setattr(stage, "read_rows", read)
        assert fast == made(folder, pieces, SOURCE)


def test_plain_lines_come_as_columns(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    lines = [b'{"text":"a","id":1}', b'{"text":"b\\r"}', b"{", b'{"text":"c","url":"http://x.y"}']
    path.write_bytes(b"\n".join(lines) + b"\n")
    (rows,) = read_rows(Piece(str(path), path.name), SOURCE, "")
    assert isinstance(rows, Rows)
    columns = {name: column.to_pylist() for name, column in rows.columns.items()}
    assert columns == {
        "offset": [0, 37],
        "text": ["a", "c"],
        "num_bytes": [1, 1],
        "num_chars": [1, 1],
        "source_id": ["1", None],
        "url": [None, "http://x.y"],
        "domain": [None, "x.y"],
        "meta": [[], [("url", "http://x.y")]],
    }
    assert [type(item) for item in rows.others] == [Record, Bad]


def test_a_text_field_that_is_also_kept_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"text":"a"}\n')
    source = Input(source="s", files="x", keep=("text",))
    assert list(read_rows(Piece(str(path), path.name), source, "")) == [
        Record(0, 12, "a", {"meta": {"text": "a"}})
    ]


LINE = b'{"text":"a"}\n'


@pytest.mark.parametrize("error", [BrokenStream("truncated_gzip", "cut"), OSError("the disk")])
def test_what_stands_before_a_fault_comes_first(error: Exception) -> None:
    def stream() -> Iterator[bytes]:
        yield LINE * 2 + b'{"te'
        raise error

    found = jsonl_rows.blocks(stream(), 0, None)
    assert next(found) == (0, LINE * 2)
    if isinstance(error, BrokenStream):
        assert list(found) == [jsonl.Line(26, 4, b'{"te', error)]
    else:
        with pytest.raises(OSError, match="the disk"):
            next(found)


def test_a_line_above_the_limit_is_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 100)
    monkeypatch.setattr(jsonl_rows, "BLOCK_BYTES", 10)
    chunks = iter([LINE, *[b"x" * 50] * 100, b"\n", LINE])
    found = list(jsonl_rows.blocks(chunks, 0, None))
    assert found[0] == (0, LINE)
    long, after = found[1:]
    assert isinstance(long, jsonl.Line)
    assert (long.offset, long.num_bytes) == (13, 5000)
    assert len(long.data) <= 200
    assert after == jsonl.Line(5014, 12, LINE[:-1])


def test_a_line_above_the_limit_that_came_in_one_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 20)
    long = b'{"text":"%b"}' % (b"b" * 20)
    rows = jsonl_rows.rows_of(5, LINE + long + b"\n" + LINE, SOURCE)
    assert rows.columns["offset"].to_pylist() == [5, 50]
    detail = "a line of 31 bytes; at most 20 are read as one record"
    assert rows.others == [Bad(18, 31, "too_long", detail, long.decode())]


def test_a_sample_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f'{{"text": "{i}", "n": {i}}}\n' for i in range(100)))
    shard = Shard(0, "s", (Piece(str(path), "in.jsonl"),), text_bytes=0, version="")
    counters = stage.ingest(tmp_path, shard, SOURCE, "", (), lambda doc_id: doc_id[0] < 128)
    table = pq.read_table(stage.outputs(tmp_path, 0)[0])
    assert all(doc_id.as_py()[0] < 128 for doc_id in table.column("id"))
    assert counters["kept_fields"] == {"n": len(table)}
    assert [dict(meta)["n"] for meta in table.column("meta").to_pylist()] == table.column(
        "text"
    ).to_pylist()
