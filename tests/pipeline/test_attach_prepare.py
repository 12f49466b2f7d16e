"""Attached columns through the real command: `assay prepare` moves documents to other rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import small_corpus
from small_corpus import assay

from pipeline.corpus import manifest, part_paths


def lengths(root: Path) -> dict[bytes, int]:
    """num_chars of every document by its id."""
    tables = [pq.read_table(p, columns=["id", "num_chars"]) for p in part_paths(root, "documents")]
    table = pa.concat_tables(tables)
    return dict(zip(table["id"].to_pylist(), table["num_chars"].to_pylist(), strict=True))


def attached(root: Path) -> dict[bytes, int | None]:
    found: dict[bytes, int | None] = {}
    for path in part_paths(root, "documents"):
        values = pq.read_table(root / "signals/mine" / path.name)["length"].to_pylist()
        found |= dict(zip(pq.read_table(path)["id"].to_pylist(), values, strict=True))
    return found


def test_another_shard_size_and_another_file(tmp_path: Path) -> None:
    root = small_corpus.prepare(tmp_path, 30)
    before = lengths(root)
    columns = {"id": [key.hex() for key in before], "length": list(before.values())}
    pq.write_table(pa.table(columns), tmp_path / "mine.parquet")
    assay("attach", root, tmp_path / "mine.parquet", "--on", "id")
    assert attached(root) == before

    settings = (tmp_path / "corpus.yaml").read_text().replace("en.jsonl", "en*.jsonl")
    (tmp_path / "corpus.yaml").write_text(settings + "shard_bytes: 1000000\nhard: []\n")
    text = small_corpus.english(900)
    (tmp_path / "en-2.jsonl").write_text(json.dumps({"id": "new", "text": text}) + "\n")
    assay("prepare", tmp_path / "corpus.yaml", "--workers", "1")
    after = lengths(root)
    assert len(after) == len(before) + 2  # the new document, and an empty one that was dropped
    assert attached(root) == {key: before.get(key) for key in after}
    assert manifest(root)["signals"] == ["normalize", "language", "gopher", "c4", "fineweb", "mine"]
