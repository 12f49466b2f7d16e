from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import schema
from pipeline.readers import Piece, Record, jsonl_rows
from pipeline.readers.streams import DamagedShardError
from pipeline.settings import Input
from pipeline.shards import Shard
from pipeline.transforms import documents
from pipeline.transforms import ingest as module
from pipeline.transforms.ingest import ingest

PAGE = {"text": "一段\r\n话", "id": 7, "url": "https://Example.org:80/a", "label": "好", "stars": 3}
PLAIN = {"text": "plain"}
EMPTY = {"text": " \n"}
BINARY = {"text": "a\0\0\0"}


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """A corpus of one part, made of four records."""
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (PAGE, PLAIN, EMPTY, BINARY)))
    shard = Shard(0, "notes", (Piece(str(path), "notes.jsonl"),), text_bytes=0, version="")
    source = Input(source="notes", files=str(path), kind="qa", keep=("label", "stars"))
    totals = ingest(tmp_path, shard, source, "resiliparse", ("empty", "not_text"), None)
    assert totals == {
        "documents": 2,
        "bytes": 15,
        "chars": 9,
        "source": "notes",
        "files": {"notes.jsonl": {"records": 4, "kept": 2, "rejected": 2}},
        "reasons": {"empty": 1, "not_text": 1},
        "kept_fields": {"label": 1, "stars": 1},
        "bad_files": [],
    }
    return tmp_path


def test_columns_of_documents(part: Path) -> None:
    table = pq.read_table(part / "documents" / "part-00000.parquet")
    assert table.column_names == schema.DOCUMENTS.names
    page, plain = (
        {name: value for name, value in row.items() if value is not None}
        for row in table.to_pylist()
    )
    assert page == {
        "id": schema.document_id("notes", "notes.jsonl", 0),
        "content_hash": schema.text_hash("一段\n话".encode()),
        "source": "notes",
        "source_id": "7",
        "kind": "qa",
        "file": "notes.jsonl",
        "offset": 0,
        "url": "https://Example.org:80/a",
        "domain": "example.org",
        "text": "一段\n话",
        "num_bytes": 10,
        "num_chars": 4,
        "meta": [("label", "好"), ("stars", "3")],
    }
    assert sorted(plain) == sorted(set(page) - {"source_id", "url", "domain"})
    assert plain["meta"] == []


def test_counts_of_normalization(part: Path) -> None:
    counts = pq.read_table(part / "signals" / "normalize" / "part-00000.parquet")
    assert counts.column("num_crlf") == pa.chunked_array([[1, 0]], pa.int32())


def test_rejects(part: Path) -> None:
    rejects = pq.read_table(part / "rejects" / "part-00000.parquet").to_pylist()
    assert [(row["reason"], row["detail"]) for row in rejects] == [
        ("empty", "no text but white space"),
        ("not_text", "3 of 4 characters are NUL, control or undecodable"),
    ]


def test_row_groups_are_cut_at_rows_and_at_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands between the documents, and however records are looked at together."""
    monkeypatch.setattr(documents, "ROW_GROUP_BYTES", 1_000)
    monkeypatch.setattr(documents, "ROW_GROUP_ROWS", 8)
    texts = ["字" * 300, "x" * 200, *"abcdefghij", "y" * 4_000, *"kl"]
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    path = tmp_path / "a.jsonl"
    path.write_text("\n{]\n".join(lines), "utf-8")
    shard = Shard(0, "s", (Piece(str(path), "a.jsonl"),), text_bytes=0, version="")
    for batch_bytes in (1, 700, 1_000_000):
        monkeypatch.setattr(module, "BATCH_BYTES", batch_bytes)
        monkeypatch.setattr(jsonl_rows, "BLOCK_BYTES", batch_bytes)
        counters = ingest(tmp_path, shard, Input(source="s", files="a"), "", (), None)
        assert counters["files"] == {"a.jsonl": {"records": 29, "kept": 15, "rejected": 14}}
        file = pq.ParquetFile(tmp_path / "documents" / "part-00000.parquet")
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        assert groups == [2, 8, 3, 2]
        assert file.read().column("text").to_pylist() == texts
        rejects = pq.read_table(tmp_path / "rejects" / "part-00000.parquet")
        offsets = rejects.column("offset").to_pylist()
        assert offsets == sorted(set(offsets))


def test_a_sample_counts_what_is_outside(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "{i}"}}\n{{\n' for i in range(100)))
    shard = Shard(0, "s", (Piece(str(path), "a.jsonl"),), text_bytes=0, version="")
    source = Input(source="s", files="a")
    counters = ingest(tmp_path, shard, source, "", (), lambda doc_id: doc_id[0] < 128)
    counted = counters["files"]["a.jsonl"]
    table = pq.read_table(tmp_path / "documents" / "part-00000.parquet")
    assert all(i.as_py()[0] < 128 for i in table.column("id"))
    assert counted["kept"] == len(table)
    assert 30 < counted["kept"] < 70
    assert counted["records"] == 200
    assert counted["kept"] + counted["rejected"] + counted["not_sampled"] == 200


def test_what_is_ours_is_no_bad_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `max_bad_files`, a damaged shard of ours or a full disk would else cost records."""
    source = Input(source="s", files="a")
    (tmp_path / "0-9.zst").write_bytes(b"\x28\xb5\x2f\xfd damaged")
    piece = Piece(str(tmp_path / "0-9.zst"), "a.jsonl.gz", spilled=True)
    shard = Shard(0, "s", (piece,), text_bytes=0, version="")
    with pytest.raises(DamagedShardError, match="this shard of a.jsonl.gz is damaged"):
        ingest(tmp_path, shard, source, "", (), None, tolerant=True)

    def full(*_: object) -> Iterator[Record]:
        yield Record(0, 1, "one")
        raise error

    monkeypatch.setattr(module, "read_rows", full)
    error = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space left"):
        ingest(tmp_path, shard, source, "", (), None, tolerant=True)
    error = OSError(errno.EIO, "Input/output error")
    counters = ingest(tmp_path, shard, source, "", (), None, tolerant=True)
    assert counters["files"] == {"a.jsonl.gz": {"records": 2, "kept": 1, "rejected": 1}}
    assert counters["reasons"] == {"bad_file": 1}
    later = replace(piece, begin=7, base=9)
    shard = replace(shard, pieces=(piece, later))
    ingest(tmp_path, shard, source, "", (), None, tolerant=True)
    rejects = pq.read_table(tmp_path / "rejects" / "part-00000.parquet")
    assert rejects["offset"].to_pylist() == [-1, -10]  # no record's, and not twice the same
