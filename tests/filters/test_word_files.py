"""Every list that ships is named with its origin, its licence and the hash of what ships."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

FOLDERS = [Path(__file__).parents[2] / "filters" / name for name in ("words", "models")]
FILES = [
    path for folder in FOLDERS for path in sorted(folder.iterdir()) if path.name != "README.md"
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_readme_names_what_ships(path: Path) -> None:
    rows = (path.parent / "README.md").read_text("utf-8").splitlines()
    (row,) = [row for row in rows if row.startswith(f"| {path.name} |")]
    assert hashlib.sha256(path.read_bytes()).hexdigest() in row
    assert len(row.split(" | ")) >= 4, "file, what, origin, licence"
