"""skipped.jsonl of a run: windows that could not be read, and that `on_damage: skip` made blank.

One line a window: position, source, part, window, why. Each rank adds those of its own batches, in
one write, when a step takes them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from mixtures.batch import Skipped
from pipeline.files import replacing

FILE = "skipped.jsonl"


def add(folder: Path, skipped: Sequence[Skipped]) -> None:
    if not skipped:
        return
    descriptor = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, _lines(skipped))
    finally:
        os.close(descriptor)


def read(folder: Path) -> list[Skipped]:
    """In the order of positions. A line that a kill cut is not one."""
    path = folder / FILE
    lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
    return sorted((Skipped(**json.loads(line)) for line in lines), key=lambda one: one.position)


def go_back(folder: Path, position: int) -> None:
    """Forget what was skipped from a position on, which is read again."""
    kept = [one for one in read(folder) if one.position < position]
    if (folder / FILE).exists():
        with replacing(folder / FILE) as temporary:
            temporary.write_bytes(_lines(kept))


def _lines(skipped: Sequence[Skipped]) -> bytes:
    return "".join(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in skipped).encode()
