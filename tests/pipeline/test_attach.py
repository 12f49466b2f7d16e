from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_corpus

from pipeline.attach import attach, main
from pipeline.corpus import CorpusError, manifest
from pipeline.sql import ask


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tiny_corpus.write(tmp_path / "corpus")


def ids(*rows: tuple[str, int]) -> list[str]:
    return [tiny_corpus.identity(source, row).hex() for source, row in rows]


def rows(root: Path, sql: str) -> list[tuple[Any, ...]]:
    with ask(root, sql, macros={}, timeout_seconds=20) as reader:
        table = reader.read_all()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_on_id(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "quality.parquet"
    keys = [*ids(("qa", 2), ("web", 0)), "0" * 32]
    pq.write_table(pa.table({"id": keys, "score": [0.5, 0.25, 9.0], "tag": ["好", "b", "c"]}), file)
    assert main([str(root), str(file), "--on", "id"]) == 0
    assert capsys.readouterr().out == (
        f"wrote {root}/signals/quality: 8 documents, 6 of them NULL (not in the file); "
        "1 keys of the file are in no document\n"
    )
    assert rows(
        root,
        "select source_id, quality.score, quality.tag from documents "
        "where quality.score is not null order by all",
    ) == [("qa-2", 0.5, "好"), ("web-0", 0.25, "b")]
    assert manifest(root)["signals"] == ["language", "gopher", "quality"]
    for part, num_rows in ((0, 5), (1, 3)):
        written = pq.ParquetFile(root / f"signals/quality/part-{part:05d}.parquet")
        assert (written.metadata.num_rows, written.schema_arrow.names) == (
            num_rows,
            ["score", "tag"],
        )


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_on_content_hash_reaches_every_copy(root: Path, tmp_path: Path, suffix: str) -> None:
    key = tiny_corpus.content("the cat sat on the mat").hex().upper()
    file = tmp_path / f"scores.{suffix}"
    text = (
        f"content_hash,x\n{key},7\n" if suffix == "csv" else f'{{"content_hash":"{key}","x":7}}\n'
    )
    file.write_text(text)
    assert attach(root, file, "content_hash", "mine") == {
        "documents": 8,
        "missing": 6,
        "unused": 0,
    }
    assert rows(root, "select source_id from documents where mine.x = 7 order by 1") == [
        ("web-0",),
        ("web-1",),
    ]


def test_row_groups_are_those_of_the_documents(root: Path, tmp_path: Path) -> None:
    path = root / "documents/part-00000.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=2)
    pq.write_table(pa.table({"id": ids(("web", 0)), "x": [1]}), tmp_path / "a.parquet")
    attach(root, tmp_path / "a.parquet", "id", "a")
    written = pq.ParquetFile(root / "signals/a/part-00000.parquet").metadata
    assert [written.row_group(i).num_rows for i in range(written.num_row_groups)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("columns", "name", "message"),
    [
        ({"id": ["web0", "web0"], "x": [1, 2]}, "a", "1 keys stand more than once"),
        ({"key": ["web0"], "x": [1]}, "a", "no key column 'id'; its columns: key, x"),
        ({"id": ["web0"]}, "a", "nothing beside the key column"),
        ({"id": ["web0"], "pass": [True]}, "a", "cannot be called 'pass'"),
        ({"id": ["abc"], "x": [1]}, "a", "'abc' is not a hash; expected 32 hex digits"),
        ({"id": [None], "x": [1]}, "a", "expected 32 hex digits"),
        ({"id": [1], "x": [1]}, "a", "type int64"),
        ({"id": [b"short"], "x": [1]}, "a", "type binary"),
        ({"id": ["0" * 32], "x": [1]}, "a", "none of its 1 keys .* is the key content_hash"),
        ({"id": ["web0"], "x": [1]}, "gopher", "'gopher' is taken .* --name"),
        ({"id": ["web0"], "x": [1]}, "kept", "'kept' is taken"),
        ({"id": ["web0"], "x": [1]}, "My Group", "lower-case letters"),
    ],
)
def test_refusals_change_nothing(
    root: Path, tmp_path: Path, columns: dict[str, list[Any]], name: str, message: str
) -> None:
    first = ids(("web", 0))[0]
    columns = {
        key: [first if value == "web0" else value for value in values]
        for key, values in columns.items()
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    before = sorted(path.relative_to(root) for path in root.rglob("*.parquet"))
    with pytest.raises(CorpusError, match=message):
        attach(root, tmp_path / "a.parquet", "id", name)
    assert sorted(path.relative_to(root) for path in root.rglob("*.parquet")) == before
    assert manifest(root)["signals"] == ["language", "gopher"]


def test_a_second_time_needs_replace(root: Path, tmp_path: Path) -> None:
    for value in (1, 2):
        pq.write_table(pa.table({"id": ids(("web", 0)), "x": [value]}), tmp_path / "a.parquet")
        if value == 2:
            with pytest.raises(CorpusError, match="attached already.*--replace"):
                attach(root, tmp_path / "a.parquet", "id", "a")
        attach(root, tmp_path / "a.parquet", "id", "a", replace=value == 2)
        assert rows(root, "select max(a.x) from documents") == [(value,)]
    assert manifest(root)["signals"] == ["language", "gopher", "a"]
    with pytest.raises(CorpusError, match="no reader for this suffix; known: .parquet, .csv"):
        attach(root, tmp_path / "a.xlsx", "id", "b")
