"""Corpora of one source each in a folder, with one tokenizer, and what a mixture takes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from small_corpus import assay

from mixtures.select import Selection, select
from mixtures.spec import load_mixture


def prepare(folder: Path, name: str, rows: list[dict[str, Any]], **settings: Any) -> str:
    """Make the corpus `name` of these rows; returns what `assay prepare` said."""
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    known = {
        "inputs": [{"source": name, "files": f"{name}.jsonl", "url": "url"}],
        "tokenizer": "tokenizer.json",
        "signals": ["language"],
        "heldout": {"share": 0},
        "output": name,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(known | settings))
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.exists():
        assay("tokenizer", "train", path, "--vocab-size", "600", "--output", tokenizer)
    return assay("prepare", path, "--workers", "1").stdout


def choose(folder: Path, *names: str, file: str = "mixture.yaml", **settings: Any) -> Selection:
    """What a mixture of all documents of these corpora selects."""
    mixture = {
        "corpora": {name: name for name in names},
        "sequence_length": 64,
        "sources": {name: {"from": name} for name in names},
    }
    (folder / file).write_text(yaml.safe_dump(mixture | settings))
    return select(load_mixture(folder / file))


def contents(selection: Selection) -> set[bytes]:
    hashes = (documents.content_hash for documents in selection.documents.values())
    return {content.tobytes() for some in hashes for content in some}
