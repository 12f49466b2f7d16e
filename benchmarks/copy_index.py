"""What an index of documents that were had takes on the disk, and what it costs to make and to ask:

    python benchmarks/copy_index.py [MB]

Real text of each language, cut in two: the first half is indexed, the second is selected beside it
(rates are per CPU second, of all processes).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import texts
import yaml

from mixtures.indexing import index
from mixtures.select import select
from mixtures.spec import load_mixture
from pipeline.copy_index import Index
from pipeline.corpus import manifest

TEXT_COLUMNS = ("shingles", "sketch", "content_hash", "folded_hash", "url_hash", "verified")


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    for language in ("en", "zh"):
        with tempfile.TemporaryDirectory() as folder:
            _measure(Path(folder), language, int(megabytes * 1e6))


def _measure(folder: Path, language: str, num_bytes: int) -> None:
    lines = texts.lines(language, num_bytes)
    halves = {"old": lines[::2], "new": lines[1::2]}
    for name, half in halves.items():
        (folder / f"{name}.jsonl").write_bytes(b"\n".join(half))
        _prepare(folder, name)
    text_mb = manifest(folder / "old")["stages"]["ingest"]["totals"]["bytes"] / 1e6
    index(str(folder / "old"), str(folder / "compiled"))
    began = _cpu_seconds()
    made = index(str(folder / "old"), str(folder / "index"))
    seconds = _cpu_seconds() - began
    print(f"{language}: {text_mb:.1f} MB of text, indexed at {text_mb / seconds:.0f} MB/CPU-s")
    for what, size in _sizes(made).items():
        print(f"  {what:<14} {size / text_mb / 1e6:.3f} MB for a MB of text")
    stored = sum(path.stat().st_size for path in (folder / "old/documents").iterdir())
    print(f"  (documents/    {stored / text_mb / 1e6:.3f})")
    (group,) = made.groups
    shingles = _sizes(made)["shingles"] / sum(_lengths(made))
    print(f"  {group.documents:,} documents, {shingles:.2f} bytes a shingle")
    kept = {}
    for not_in in ([], ["index"]):
        settings: dict[str, Any] = {
            "corpora": {"new": "new"}, "sequence_length": 64, "not_in": not_in,
            "sources": {"new": {"from": "new"}},
        }  # fmt: skip
        (folder / "mixture.yaml").write_text(yaml.safe_dump(settings))
        began = _cpu_seconds()
        (count,) = select(load_mixture(folder / "mixture.yaml")).counts
        kept[bool(not_in)] = count.documents, _cpu_seconds() - began
    print(
        f"  selected alone {kept[False][0]:,} in {kept[False][1]:.1f} CPU-s, beside the index "
        f"{kept[True][0]:,} in {kept[True][1]:.1f}"
    )


def _prepare(folder: Path, name: str) -> None:
    settings = {
        "inputs": [{"source": name, "files": f"{name}.jsonl", "url": "url"}],
        "signals": ["language"], "tokenizer": "tokenizer.json", "heldout": {"share": 0},
        "output": name,
    }  # fmt: skip
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(settings))
    if name == "old":
        _assay(
            "tokenizer", "train", path, "--vocab-size", 600, "--output", folder / "tokenizer.json"
        )
    _assay("prepare", path)


def _assay(*arguments: Any) -> None:
    command = [sys.executable, "-m", "trainer.cli", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


def _sizes(made: Index) -> dict[str, int]:
    """Bytes of all files, of the documents by column."""
    sizes = {"band keys": 0, "forest": 0} | dict.fromkeys(TEXT_COLUMNS, 0)
    for name, entry in made.files.items():
        table = name.split("/")[0]
        if table != "documents":
            sizes["band keys" if table == "keys" else table] += entry["bytes"]
            continue
        footer = pq.ParquetFile(made.folder / name).metadata
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            for place in range(group.num_columns):
                column = group.column(place)
                sizes[column.path_in_schema.split(".")[0]] += column.total_compressed_size
    return {"all": sum(entry["bytes"] for entry in made.files.values())} | sizes


def _lengths(made: Index) -> list[int]:
    tables = (
        pq.read_table(made.folder / name, columns=["shingles"])["shingles"].combine_chunks()
        for name in made.files
        if name.startswith("documents/")
    )
    return [len(table.flatten()) for table in tables]


def _cpu_seconds() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


if __name__ == "__main__":
    main()
