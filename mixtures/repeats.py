"""Which places of repeated text a mixture edits: of all that it selects, the first one stays. So it
is with long substrings, and with lines and paragraphs that stand in many documents.

The order is that of contents, then of bytes: see dedup/repeats.py. It is asked of the selection, as
copies are: where the first place of the corpus is not selected (a near copy that went, held-out or
forgotten text, a `where`), the next one keeps the text, so it is never lost. Places in two corpora
are not held against each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import schema
from pipeline.commits import record_path
from pipeline.corpus import part_paths
from pipeline.files import part_number
from pipeline.tables import halves_of, names_of
from pipeline.whole import require_whole, vouched

Going = Mapping[int, np.ndarray]  # part -> mask of its rows of the table that become edits


class Table(NamedTuple):
    """Where all places stand that edits of a name may take out."""

    folder: str
    stage: str  # that makes it
    kind: str  # of the edits


TABLES = {
    "substrings": Table("substrings", "substrings", schema.SUBSTRING),
    "repeated_lines": Table("places/repeated_lines", "edits/repeated_lines", "repeated_line"),
    "repeated_paragraphs": Table(
        "places/repeated_paragraphs", "edits/repeated_paragraphs", "repeated_paragraph"
    ),
}
PASS_ROWS = 1 << 24  # of the table, ordered at a time: some 1.5 GB


def rows_that_go(root: Path, table: Table, ids: pa.Array, contents: pa.Array) -> Going:
    """Of all that repeats, what becomes edits.

    Args:
        ids, contents: of the documents of this corpus that the mixture keeps, as bytes.

    Raises:
        CorpusError: the table is damaged.
    """
    paths = {part_number(path): path for path in part_paths(root, table.folder)}
    for part, path in paths.items():
        name = str(path.relative_to(root))
        require_whole(root, name, vouched([record_path(root, table.stage, part)]))
    going = {part: np.zeros(pq.read_metadata(path).num_rows, bool) for part, path in paths.items()}
    num_passes = 1 << max(0, sum(map(len, going.values())) // PASS_ROWS).bit_length()
    known = names_of(ids)
    order = np.argsort(known)
    known, halves = known[order], halves_of(contents)[order].astype(np.uint64)
    for number in range(num_passes):
        _pass(paths, number, num_passes, known, halves, going)
    return going


def _pass(
    paths: dict[int, Path],
    number: int,
    num_passes: int,
    ids: np.ndarray,
    contents: np.ndarray,
    going: dict[int, np.ndarray],
) -> None:
    """Mark the rows of one share of the keys."""
    from dedup.repeats import groups  # loads numba: 0.5 s, for these edits alone

    found = [(np.zeros((0, 2), np.uint64), np.zeros((0, 2), np.uint64), *np.zeros((3, 0), int))]
    for part, path in paths.items():
        table = pq.read_table(path, columns=["id", "start", "key"]).combine_chunks()
        if not len(ids) or not len(table):
            continue
        keys = halves_of(table["key"].combine_chunks()).astype(np.uint64)
        stored = names_of(table["id"])
        places = np.minimum(np.searchsorted(ids, stored), len(ids) - 1)
        mine = (ids[places] == stored) & (keys[:, 0] % np.uint64(num_passes) == number)
        (rows,) = np.nonzero(mine)
        starts = np.asarray(table["start"])[rows]
        found.append((keys[rows], contents[places[rows]], starts, np.full(len(rows), part), rows))
    key, content, starts, parts, rows = map(np.concatenate, zip(*found, strict=True))
    grouped = groups(key[:, 0], key[:, 1], content, starts)
    later = grouped.at[~grouped.first]
    for part in np.unique(parts[later]).tolist():
        going[part][rows[later[parts[later] == part]]] = True
