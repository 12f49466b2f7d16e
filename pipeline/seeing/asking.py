"""Questions to a corpus whose answers fit into memory, as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.predicates import predicate
from pipeline.sql import ask

TIMEOUT_SECONDS = 3_600.0  # a column of 1e8 documents takes minutes

Row = dict[str, Any]


def rows(root: Path, question: str) -> list[Row]:
    """The answer to one SELECT."""
    with ask(root, question, macros={}, timeout_seconds=TIMEOUT_SECONDS) as batches:
        found: list[Row] = batches.read_all().to_pylist()
    return found


def checked(where: str | None) -> str:
    """A predicate of the user as SQL, in brackets; of none, one that holds for every document.

    Raises:
        SqlError: not one expression over columns.
    """
    return predicate(where) if where else "(true)"
