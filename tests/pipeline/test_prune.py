"""What belongs to nothing goes, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipeline.job import plan_job
from pipeline.prune import prune
from pipeline.settings import load_corpus
from pipeline.shards import load_shards
from pipeline.tokenizer import load

STRAY = (
    "documents/part-00999.parquet",
    "stats/ingest/part-00999.json",
    "signals/former/part-00999.parquet",
    "edits/former/part-00999.parquet",
    "pairs/part-00001.parquet",  # a partition: there is one
    "heldout/index/present.npy",
    "cut/of-no-input/0-9.zst",
)


def test_what_belongs_to_nothing_goes(many_parts: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(many_parts, tmp_path / "corpus"))
    before = {path for path in root.rglob("*") if path.is_file()}
    for name in STRAY:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    settings = load_corpus(many_parts.parent / "corpus.yaml")
    prune(plan_job(root, settings, load(settings.tokenizer), load_shards(root)))
    assert {path for path in root.rglob("*") if path.is_file()} == before
