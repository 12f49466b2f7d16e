"""Which checkpoints a run has and whether they are whole. Imports no torch: one looks first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.files import file_hash, read_json


def newest(folder: Path) -> Path | None:
    """The newest checkpoint whose files are all as its manifest says."""
    return next((path for path in newest_first(folder) if damage(path) is None), None)


def manifest(path: Path) -> dict[str, Any]:
    """The `record` that a checkpoint was saved with, and its `files`."""
    found: dict[str, Any] = read_json(path / "manifest.json")
    return found


def damage(path: Path) -> str | None:
    """What is wrong with a checkpoint, None when nothing is."""
    if not (path / "manifest.json").exists():
        return f"{path}: no manifest.json; the checkpoint was never completed"
    for name, known in manifest(path)["files"].items():
        file = path / name
        if not file.exists() or file.stat().st_size != known["bytes"]:
            return f"{file}: missing, or not {known['bytes']} bytes long"
        if file_hash(file) != known["xxh3_128"]:
            return f"{file}: contents differ from the hash in manifest.json"
    return None


def newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), reverse=True)
