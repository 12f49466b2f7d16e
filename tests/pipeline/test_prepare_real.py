"""Real text goes through as a whole; every record is kept or rejected, file by file."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from small_corpus import assay

from pipeline import accounts, corpus
from pipeline.files import read_json

SAMPLE, CORPUS = os.environ.get("ASSAY_SAMPLE"), os.environ.get("ASSAY_CORPUS")
SOAK = os.environ.get("ASSAY_SOAK") == "1"


def prepare(folder: Path, inputs: dict[str, str], workers: int = 2) -> Path:
    lines = [f"  - {{source: {name}, files: '{files}'}}" for name, files in inputs.items()]
    settings = folder / "corpus.yaml"
    text = "\n".join(["inputs:", *lines, "tokenizer: tokenizer.json", "output: corpus"])
    settings.write_text(text + "\n")
    train = ("--vocab-size", "4000", "--sample", "2MB", "--output", folder / "tokenizer.json")
    assay("tokenizer", "train", settings, *train)
    assay("prepare", settings, "--workers", str(workers))
    return folder / "corpus"


def file_accounts(root: Path) -> dict[str, dict[str, int]]:
    files: dict[str, Counter[str]] = {}
    for path in (root / "stats" / "ingest").glob("part-*"):
        accounts.add_files(files, read_json(path))
    return {file: dict(counts) for file, counts in sorted(files.items())}


def rows(root: Path, table: str) -> int:
    return sum(pq.read_metadata(path).num_rows for path in corpus.part_paths(root, table))


def check(root: Path) -> dict[str, Any]:
    by_file = file_accounts(root)
    assert all(c["records"] == c["kept"] + c["rejected"] for c in by_file.values()), by_file
    assert rows(root, "documents") == sum(c["kept"] for c in by_file.values())
    assert rows(root, "rejects") == sum(c["rejected"] for c in by_file.values())
    return by_file


@pytest.mark.skipif(SAMPLE is None, reason="ASSAY_SAMPLE is not set")
def test_the_sample(tmp_path: Path) -> None:
    root = prepare(tmp_path, {"sample": f"{SAMPLE}/*.*.*z", "other": f"{SAMPLE}/*.parquet"})
    by_file = check(root)
    assert {file: (c["records"], c["rejected"]) for file, c in by_file.items()} == {
        "other/other-languages.parquet": (2035, 1),
        "sample/en.jsonl.gz": (5917, 0),
        "sample/pages-mpl.warc.gz": (831, 0),
        "sample/pages.warc.gz": (544, 0),
        "sample/zh.jsonl.gz": (22100, 11227),
    }
    reasons = corpus.manifest(root)["stages"]["ingest"]["totals"]["reasons"]
    assert reasons == {"empty": 11228}


@pytest.mark.slow
@pytest.mark.skipif(
    CORPUS is None or not SOAK, reason="ASSAY_CORPUS is not set, or not `make soak`"
)
def test_the_corpus(tmp_path: Path) -> None:
    inputs = {"jsonl": f"{CORPUS}/*.jsonl.gz", "pages": f"{CORPUS}/*.warc.gz"}
    root = prepare(tmp_path, inputs)
    by_file = check(root)
    assert sum(c["records"] for c in by_file.values()) == 41_809
    assert len(by_file) == 16
