"""Which checkpoints a run has, whether they are whole, and which may go. Imports no torch: one
looks first."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.files import file_hash, read_json

MANIFEST, LATEST = "manifest.json", "latest"


def name(step: int) -> str:
    return f"step-{step:08d}"


def step_number(name: str) -> int:
    return int(name.removeprefix("step-"))


def newest(folder: Path) -> Path | None:
    """The newest checkpoint whose files are all as its manifest says."""
    return next((path for path in newest_first(folder) if damage(path) is None), None)


def manifest(path: Path) -> dict[str, Any]:
    """The `record` that a checkpoint was saved with, and its `files`."""
    found: dict[str, Any] = read_json(path / MANIFEST)
    return found


def damage(path: Path, hashes: bool = True) -> str | None:
    """What is wrong with a checkpoint, None when nothing is; without `hashes` its files are looked
    at, not read."""
    if not (path / MANIFEST).exists():
        return f"{path}: no manifest.json; the checkpoint was never completed"
    try:
        files = manifest(path)["files"]
    except (ValueError, KeyError):
        return f"{path / MANIFEST}: not as it was written"
    for name, known in files.items():
        file = path / name
        if not file.exists() or file.stat().st_size != known["bytes"]:
            return f"{file}: missing, or not {known['bytes']} bytes long"
        if hashes and file_hash(file) != known["xxh3_128"]:
            return f"{file}: contents differ from the hash in manifest.json"
    return None


def newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), reverse=True)


def newest_name(folder: Path) -> str | None:
    """The name of the newest complete one, by what its files look like."""
    found = (path.name for path in newest_first(folder) if damage(path, hashes=False) is None)
    return next(found, None)


def latest(folder: Path) -> str | None:
    """The name that the link `latest` holds."""
    try:
        return os.readlink(folder / LATEST)
    except OSError:
        return None


# --- which may go ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Copy:
    """A checkpoint as retention sees it."""

    name: str
    good: bool
    permanent: bool  # by `keep_every`


def superfluous(copies: Sequence[Copy], keep: int, held: Sequence[str] = ()) -> list[str]:
    """Names that may go: older than the `keep` newest good ones that are not permanent.

    What is `held` (what `latest` names, what is being copied) stays, and damaged ones count for
    nothing, so the last good one stays whatever became of newer ones.
    """
    gone, kept = [], 0
    for copy in sorted(copies, key=lambda copy: copy.name, reverse=True):
        if copy.permanent and copy.good:
            continue
        if kept >= keep and copy.name not in held:
            gone.append(copy.name)
        kept += copy.good
    return gone


def remove_old(folder: Path, keep: int, held: Sequence[str] = ()) -> None:
    """Delete the checkpoints of a folder that may go."""
    copies = []
    for path in newest_first(folder):
        good = damage(path, hashes=False) is None
        copies.append(Copy(path.name, good, good and manifest(path).get("permanent", False)))
    newest_name = latest(folder)
    for name in superfluous(copies, keep, [*held, *([newest_name] if newest_name else [])]):
        going = folder / f".{name}.tmp"  # at once: a kill leaves no half of one
        os.replace(folder / name, going)
        shutil.rmtree(going)


def remove_unfinished(folder: Path) -> None:
    """Delete what a killed run was writing or deleting."""
    for stale in folder.glob(".step-*.tmp"):
        shutil.rmtree(stale)
