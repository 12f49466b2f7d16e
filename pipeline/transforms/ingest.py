"""Ingest: records of a shard to `documents`, `rejects` and the counts of normalization."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline import disk, schema
from pipeline.files import part_name
from pipeline.readers import Bad, Piece, Record, RefusedFileError, Rows, place_of
from pipeline.readers.formats import read_rows
from pipeline.readers.streams import DamagedShardError
from pipeline.tables import write_rows
from pipeline.transforms import documents
from pipeline.transforms.records import Origin, Tally, documents_of

if TYPE_CHECKING:
    from pipeline.settings import Input
    from pipeline.shards import Shard

BATCH_ROWS = 2_048
BATCH_BYTES = 1_000_000  # of records looked at together: they stay in the cache of a core


class UnreadableError(ValueError):
    """An input file fails; the message names it, the reason and the remedy."""


def outputs(root: Path, part: int) -> list[Path]:
    name = part_name(part)
    return [root / t / name for t in ("documents", "signals/normalize", "rejects")]


def ingest(
    root: Path,
    shard: Shard,
    source: Input,
    extractor: str,
    hard: tuple[str, ...],
    sampled: Callable[[bytes], bool] | None,
    tolerant: bool = False,
    forgotten: Callable[[pa.RecordBatch], npt.NDArray[np.bool_]] | None = None,
) -> dict[str, Any]:
    """Write the three tables of a shard; returns its counters.

    Args:
        tolerant: a file that fails costs what stands behind the fault, which is a reject.
        forgotten: tells which documents the corpus was told to forget; see forgotten.py.
        sampled: with `--limit`, tells by id whether a record is in the sample.
    """
    tally = Tally()

    def batches() -> Iterator[pa.RecordBatch]:
        for piece in shard.pieces:
            tally.files.setdefault(piece.file, Counter(records=0, kept=0, rejected=0))
            records = _readable(read_rows(piece, source, extractor), piece, tolerant, tally)
            for batch in _batches(records):
                yield documents_of(batch, Origin(piece.file, source, hard, sampled, tally))

    def forget(group: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        assert forgotten is not None
        gone = forgotten(group)
        for row in pc.value_counts(group["file"].filter(pa.array(gone))).to_pylist():
            tally.files[row["values"]].update(kept=-row["counts"], forgotten=row["counts"])
        return gone

    documents_path, normalize_path, rejects_path = outputs(root, shard.part)
    totals = documents.write(
        batches(), documents_path, normalize_path, forget if forgotten else None
    )
    write_rows(rejects_path, schema.REJECTS, tally.rejects)
    return {
        **totals,
        "source": shard.source,
        "files": {file: dict(counted) for file, counted in tally.files.items()},
        "reasons": dict(tally.reasons),
        "kept_fields": dict(tally.kept_fields),
        "bad_files": tally.bad_files,
    }


def _readable(
    records: Iterator[Rows | Record | Bad], piece: Piece, tolerant: bool, tally: Tally
) -> Iterator[Rows | Record | Bad]:
    """The records, and where the file fails a last one that says so.

    Raises:
        UnreadableError: it fails, and that is not to be tolerated.
        RefusedFileError: its reader refuses it.
        OSError: what fails is ours: a full disk for what is unpacked, a shard that `spill` made.
    """
    try:
        yield from records
    except (DamagedShardError, RefusedFileError):
        raise
    except Exception as error:  # whatever a decoder, a disk or a store makes of a bad file
        if isinstance(error, OSError) and error.errno in disk.OURS:
            raise
        reason = f"{type(error).__name__}: {error}"
        if not tolerant:
            raise UnreadableError(
                f"{piece.path} cannot be read: {reason}; mend it, take it out of `files`, or let "
                f"some fail with `max_bad_files` in corpus.yaml, and {disk.KEPT}"
            ) from error
        tally.bad_files.append({"file": piece.file, "reason": reason})
        yield Bad(place_of(piece), 0, "bad_file", reason)


def _batches(items: Iterable[Rows | Record | Bad]) -> Iterator[Rows | list[Record | Bad]]:
    """Single records together: BATCH_ROWS, or those with which BATCH_BYTES are reached."""
    batch: list[Record | Bad] = []
    size = 0
    for item in items:
        if isinstance(item, Rows):
            if batch:
                yield batch
            yield item
            batch, size = [], 0
            continue
        batch.append(item)
        size += item.num_bytes
        if len(batch) == BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
