"""What one `assay sql` costs over a corpus of very many parts, start-up included.

    python benchmarks/sql_shards.py --parts 10000

Writes a synthetic corpus (one part, copied: what is measured is the number of files) into a
temporary folder, merged as `prepare` does it, asks each question in a process of its own, and
prints the best of `--repeat` calls. Text is short, since these questions do not read it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from filters.gopher import COLUMNS
from pipeline import schema, timings
from pipeline.files import part_name, write_json
from pipeline.merged import BLOCK_PARTS, MANY_PARTS, merge
from pipeline.relations import merged_folder

TOKENIZER = "0123456789abcdef"
QUESTIONS = (
    "select lang, count(*), avg(num_bytes) from documents group by 1",
    "select lang, avg(gopher.num_words), avg(num_tokens) from documents group by 1",
    "select lang, avg(gopher.pass::int) from documents group by 1",
    "select source, count(*), sum(num_bytes) from documents group by 1",
    "select count(*) from documents where heldout",
    "select reason, count(*) from rejects group by 1",
    "select stage, sum(cpu_seconds) from timings group by 1",
)


def write_corpus(root: Path, parts: int, groups: int, rows: int) -> None:
    """A corpus of `parts` equal parts of `groups` row groups of `rows` documents."""
    for name, table in _tables(groups * rows).items():
        first = root / name / part_name(0)
        first.parent.mkdir(parents=True)
        pq.write_table(table, first, row_group_size=rows, compression="zstd")
        for part in range(1, parts):
            shutil.copyfile(first, first.with_name(part_name(part)))
        if parts >= MANY_PARTS:
            paths = [str(first.with_name(part_name(part))) for part in range(parts)]
            for block in range(0, parts, BLOCK_PARTS):
                output = root / merged_folder(name) / part_name(block // BLOCK_PARTS)
                merge(paths[block : block + BLOCK_PARTS], output)
    for part in range(parts):
        write_json(root / "stats/ingest" / part_name(part, "json"), _record(part))
    timings.write(root)
    merged = list(_tables(1)) if parts >= MANY_PARTS else []
    write_json(root / "corpus.json", _manifest(parts) | {"merged": merged})


def _tables(rows: int) -> dict[str, pa.Table]:
    numbers = pa.array(range(rows))
    text = pa.array([f"text {n}" for n in range(rows)])
    hashes = pa.array([n.to_bytes(16, "big") for n in range(rows)], schema.HASH)
    filled = {"id": hashes, "content_hash": hashes, "text": text, "num_bytes": numbers}
    filled |= {"source": pa.array(["web"] * rows), "kind": pa.array(["web"] * rows), "url": text}
    documents = [filled.get(f.name, pa.nulls(rows, f.type)) for f in schema.DOCUMENTS]
    gopher = {n: pa.array([k % 97 for k in range(rows)], s.type) for n, s in COLUMNS.items()}
    language = {
        "lang": pa.array([("en", "zh")[n % 2] for n in range(rows)]),
        "lang_score": pa.array([0.9] * rows),
    }
    literals = pa.array([0] * rows, pa.int32())
    return {
        "documents": pa.table(documents, schema.DOCUMENTS),
        "signals/language": pa.table(language),
        "signals/gopher": pa.table(gopher),
        f"tokens/{TOKENIZER}/counts": pa.table([numbers, literals], schema.TOKEN_COUNTS),
        "rejects": schema.REJECTS.empty_table(),
    }


def _record(part: int) -> dict[str, Any]:
    outputs = {f"documents/{part_name(part)}": {"bytes": 1, "xxh3": ""}}
    counters = {"documents": 1, "bytes": 1, "reasons": {}, "files": {}}
    found: dict[str, Any] = {"stage": "ingest", "part": part, "fingerprint": "", "seconds": 1.0}
    return found | {"counters": counters, "outputs": outputs, "cpu_seconds": 1.0}


def _manifest(parts: int) -> dict[str, Any]:
    return {
        "format": schema.FORMAT_VERSION,
        "name": "shards",
        "settings": {"near": {"threshold": 0.8}},
        "tokenizer": {"hash": TOKENIZER},
        "signals": ["language", "gopher"],
        "meta": [],
        "parts": list(range(parts)),
        "stages": {},
    }


def asked(root: Path, question: str) -> tuple[float, float]:
    """Wall and CPU seconds of one call of the command."""
    began, before = time.perf_counter(), os.times()
    command = [sys.executable, "-m", "trainer.cli", "sql", str(root), question]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, wall = os.times(), time.perf_counter() - began
    cpu = after.children_user + after.children_system
    return wall, cpu - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=int, default=10_000)
    parser.add_argument("--row-groups", type=int, default=8, help="of a part; 8: 16,000 documents")
    parser.add_argument("--rows", type=int, default=20, help="documents of a row group")
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-shards-") as folder:
        root = Path(folder) / "corpus"
        write_corpus(root, options.parts, options.row_groups, options.rows)
        print(f"{options.parts:,} parts of {options.row_groups} row groups; wall s, CPU s")
        for question in QUESTIONS:
            runs = [asked(root, question) for _ in range(options.repeat)]
            wall, cpu = (min(values) for values in zip(*runs, strict=True))
            print(f"{wall:6.2f} {cpu:6.2f}  {question}", flush=True)


if __name__ == "__main__":
    main()
