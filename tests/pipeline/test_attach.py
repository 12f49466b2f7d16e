from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_corpus

from pipeline import commits
from pipeline.attach import attach, attached_groups, main, renew
from pipeline.corpus import CorpusError, manifest
from pipeline.files import read_json
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
        "1 key of the file in no document\n"
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
    counters = read_json(commits.record_path(root, "ingest", 0))["counters"]
    commits.commit(root, "ingest", 0, "other row groups", [path], counters, 0, 0)
    pq.write_table(pa.table({"id": ids(("web", 0)), "x": [1]}), tmp_path / "a.parquet")
    attach(root, tmp_path / "a.parquet", "id", "a")
    written = pq.ParquetFile(root / "signals/a/part-00000.parquet").metadata
    assert [written.row_group(i).num_rows for i in range(written.num_row_groups)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("columns", "name", "message"),
    [
        ({"id": ["web0", "web0"], "x": [1, 2]}, "a", "1 key with more than one row"),
        ({"key": ["web0"], "x": [1]}, "a", "no key column 'id'; its columns: key, x"),
        ({"id": ["web0"]}, "a", "nothing beside the key column"),
        ({"id": ["web0"], "pass": [True]}, "a", "cannot be called 'pass'"),
        ({"id": ["abc"], "x": [1]}, "a", "'abc' is not a hash; expected 32 hex digits"),
        ({"id": [None], "x": [1]}, "a", "expected 32 hex digits"),
        ({"id": [1], "x": [1]}, "a", "type int64"),
        ({"id": [b"short"], "x": [1]}, "a", "type binary"),
        ({"id": ["0" * 32], "x": [1]}, "a", "1 key, none the id of .* is the key content_hash"),
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


def swap_parts(root: Path) -> None:
    """The documents of both parts in one, as another `shard_bytes` would cut them."""
    paths = [root / f"documents/part-{part:05d}.parquet" for part in (0, 1)]
    tables = [pq.read_table(path) for path in paths]
    joined = pa.concat_tables([tables[1], tables[0]])
    pq.write_table(joined.slice(0, 6), paths[0])
    pq.write_table(joined.slice(6), paths[1])
    for part in (0, 1):
        tiny_corpus.commit(root, part)


def scores(root: Path, name: str) -> dict[bytes, float | None]:
    """Document id -> score, read from the files, row by row."""
    found: dict[bytes, float | None] = {}
    for path in sorted((root / "documents").glob("part-*")):
        group = pq.read_table(root / "signals" / name / path.name)["score"].to_pylist()
        found |= dict(zip(pq.read_table(path)["id"].to_pylist(), group, strict=True))
    return found


def test_values_stay_with_their_documents_when_rows_move(root: Path, tmp_path: Path) -> None:
    keys = ids(("qa", 2), ("qa", 0), ("web", 0), ("web", 4))
    pq.write_table(pa.table({"id": keys, "score": [1.0, 2.0, 3.0, 4.0]}), tmp_path / "mine.parquet")
    attach(root, tmp_path / "mine.parquet", "id", "mine")
    before = scores(root, "mine")
    assert [before[bytes.fromhex(key)] for key in keys] == [1.0, 2.0, 3.0, 4.0]
    assert sum(score is not None for score in before.values()) == 4
    swap_parts(root)
    assert renew(root, [0, 1]) == ["mine"]
    assert scores(root, "mine") == before
    made = {path: path.stat().st_mtime_ns for path in (root / "signals/mine").iterdir()}
    assert renew(root, [0, 1]) == ["mine"]  # all stands
    assert {path: path.stat().st_mtime_ns for path in (root / "signals/mine").iterdir()} == made


def test_an_added_part_is_joined_alone(root: Path, tmp_path: Path) -> None:
    keys = [*ids(("web", 1)), "ab" * 16]
    pq.write_table(pa.table({"id": keys, "score": [1.0, 7.0]}), tmp_path / "mine.parquet")
    attach(root, tmp_path / "mine.parquet", "id", "mine")
    first = root / "signals/mine/part-00000.parquet"
    made = first.stat().st_mtime_ns
    added = pq.read_table(root / "documents/part-00001.parquet").slice(0, 2)
    new_ids = pa.array([bytes.fromhex("ab" * 16), bytes.fromhex("cd" * 16)], pa.binary(16))
    pq.write_table(added.set_column(0, "id", new_ids), root / "documents/part-00002.parquet")
    tiny_corpus.commit(root, 2)
    assert renew(root, [0, 1, 2]) == ["mine"]
    assert pq.read_table(root / "signals/mine/part-00002.parquet").to_pylist() == [
        {"score": 7.0},
        {"score": None},
    ]
    assert first.stat().st_mtime_ns == made
    assert renew(root, [0, 2]) == ["mine"]  # a part that no input has any more
    records = sorted(path.name for path in (root / "stats/signals/mine").iterdir())
    assert records == ["part-00000.json", "part-00002.json"]


def test_drop(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        pq.write_table(pa.table({"id": ids(("web", 0)), "x": [1]}), tmp_path / "a.parquet")
        attach(root, tmp_path / "a.parquet", "id", name)
    assert attached_groups(root) == ["a", "b"]
    assert main([str(root), "--drop", "a"]) == 0
    assert capsys.readouterr().out == f"removed {root}/signals/a\n"
    assert attached_groups(root) == renew(root, [0, 1]) == ["b"]
    assert manifest(root)["signals"] == ["language", "gopher", "b"]
    assert [path.name for path in (root / "stats/signals").iterdir()] == ["b"]
    with pytest.raises(CorpusError, match="no group 'gopher' is attached; there are: b"):
        main([str(root), "--drop", "gopher"])
    with pytest.raises(SystemExit):
        main([str(root)])
    assert "give a file and its key column (--on)" in capsys.readouterr().err


def test_a_folder_that_nobody_attached_is_no_group(root: Path) -> None:
    """What a signal leaves that corpus.yaml names no more."""
    (root / "signals/old").mkdir()
    assert attached_groups(root) == renew(root, [0, 1]) == []
