"""Parallel pages of held-out text: no arm trains on them, whichever corpora of it they are in.

The same page in another language gives away what an evaluation asks. Held-out sets hold the members
of a translation group together as far as they can, but not one whose set was full, which is of a
source without sets, or which came in after the sets were chosen: all these are left out here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.corpus import manifest
from pipeline.sql import ask
from pipeline.translations import COLUMN

TIMEOUT_SECONDS = 3_600.0  # as in candidates.py


def with_translations(roots: list[Path], held: pa.Array) -> pa.Array:
    """`held` (contents, hex), and the contents of all documents of the groups of its documents.

    In memory are those groups and contents. Corpora without the key `translation_group` have none.
    """
    told = [root for root in roots if manifest(root)["settings"].get(COLUMN) is not None]
    groups = _where(told, "content_hash", held, COLUMN)
    found = _where(told, COLUMN, groups, "content_hash")
    return pc.unique(pa.concat_arrays([held, found])).sort() if told else held


def _where(roots: list[Path], column: str, values: pa.Array, wanted: str) -> pa.Array:
    """The distinct `wanted` of the documents of a group whose `column` is one of these values."""
    found = [pa.array([], pa.string())]
    for root in roots:
        for batch in _documents(root):
            chosen = pc.is_in(batch[column], value_set=values)
            found.append(pc.unique(batch[wanted].filter(chosen)))
    return pc.unique(pa.concat_arrays(found))


def _documents(root: Path) -> Iterator[pa.RecordBatch]:
    query = f"select {COLUMN}, content_hash from documents where {COLUMN} is not null"
    with ask(root, query, macros={}, timeout_seconds=TIMEOUT_SECONDS) as batches:
        yield from batches
