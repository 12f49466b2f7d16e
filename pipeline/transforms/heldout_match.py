"""What may not be trained on: contents of a part that are equal or near to held-out text, that
contain it or are contained in it.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from dedup import contamination
from pipeline import frozen, schema
from pipeline.files import part_name
from pipeline.tables import write_rows
from pipeline.transforms import heldout_index

if TYPE_CHECKING:
    from pipeline.dedup_settings import Near
    from pipeline.heldout_settings import Heldout
    from pipeline.transforms.sweep import Stage


def outputs(root: Path, part: int) -> list[Path]:
    return [root / "heldout" / "matches" / part_name(part)]


def match(root: Path, heldout: Heldout, near: Near, part: int) -> Stage:
    """Contents of a part that repeat a held-out document, itself included.

    A copy is near by `near.threshold`, as everywhere, or contained by `heldout.containment`.
    """
    index = heldout_index.read(root)
    documents = frozen.paths(root)[1]
    contents, held = _contents(documents, documents.stat().st_mtime_ns)
    rows: dict[tuple[bytes, bytes], tuple[bytes, bytes, float, float]] = {}
    num_documents = num_excluded = 0
    while (batch := (yield)) is not None:
        group: list[bytes] = batch.contents.to_pylist()
        own: dict[tuple[bytes, bytes], tuple[bytes, bytes, float, float]] = {}
        found = contamination.matches(index, *batch.shingles, heldout.containment, near.threshold)
        index = heldout_index.remapped(root, index)
        for doc, other, jaccard, contained in zip(*(f.tolist() for f in found), strict=True):
            key = group[doc], contents[other]
            own[key] = (*key, jaccard, contained)
        own |= {(h, h): (h, h, 1.0, 1.0) for h in held.intersection(group)}
        excluded = {content for content, _ in own}
        num_documents += len(group)
        num_excluded += sum(content in excluded for content in group)
        rows |= own
    columns = schema.HELDOUT_MATCHES.names
    table = [dict(zip(columns, rows[key], strict=True)) for key in sorted(rows)]
    write_rows(outputs(root, part)[0], schema.HELDOUT_MATCHES, table)
    return {"documents": num_documents, "excluded": num_excluded, "matches": len(table)}


@functools.lru_cache(maxsize=1)
def _contents(documents: Path, version: int) -> tuple[list[bytes], frozenset[bytes]]:
    """Of the held-out texts, in order, and as a set: once a process, as long as the file stays the
    same. 41 ms and 4 MB for 40,000."""
    del version  # part of the cache's key
    names = pq.ParquetFile(documents).read(["content_hash"])
    contents: list[bytes] = names["content_hash"].to_pylist()
    return contents, frozenset(contents)
