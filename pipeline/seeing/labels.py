"""Labels of people and of models: `labels/<who>.jsonl` in a corpus, a line a label, only appended.

They are keyed by content, so they stay when a corpus is prepared anew, and hold in every corpus
with the same text. The last label of a content, reviewer and rubric counts.
"""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.corpus import CorpusError

LABELS = pa.schema(
    [
        ("content_hash", pa.string()),  # 32 hex digits
        ("label", pa.float64()),
        ("reviewer", pa.string()),  # a person, or a model
        ("rubric", pa.string()),  # name/version
        ("at", pa.timestamp("s")),  # UTC
        ("design", pa.string()),  # how its document was drawn, JSON: where, per, n, seed
    ]
)


def append(
    root: Path,
    reviewer: str,
    rubric: str,
    labels: dict[str, float | None],
    design: dict[str, Any] | None = None,
) -> None:
    """Add labels by content; None takes one back. On the disk when this returns."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    path = root / "labels" / f"{reviewer}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with open(path, "ab+") as file:
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)  # what a kill cut off
        for content, label in labels.items():
            row: dict[str, Any] = {"content_hash": content, "label": label, "rubric": rubric}
            row |= {"at": now} | ({"design": design} if design else {})
            file.write(json.dumps(row).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(root: Path) -> pa.Table:
    """All labels that count, as `LABELS`.

    Raises:
        CorpusError: a line is no label, unless it is the last, which a kill may have cut.
    """
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for path in sorted((root / "labels").glob("*.jsonl")):
        lines = path.read_text("utf-8", errors="replace").splitlines(keepends=True)
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                key = (str(row["content_hash"]), path.stem, str(row["rubric"]))
                label = None if row["label"] is None else float(row["label"])
                at = datetime.datetime.fromisoformat(row["at"])
            except (ValueError, KeyError, TypeError):
                if number == len(lines) and not line.endswith("\n"):
                    continue
                raise CorpusError(
                    f"{path}: line {number} is no label: {line[:60]!r}; take it out"
                ) from None
            found.pop(key, None)
            if label is not None:
                found[key] = {
                    "content_hash": key[0],
                    "label": label,
                    "reviewer": key[1],
                    "rubric": key[2],
                    "at": at,
                    "design": json.dumps(row["design"]) if row.get("design") else None,
                }
    return pa.Table.from_pylist(list(found.values()), LABELS)
