"""Ingest: records of a shard to `documents`, `rejects` and the counts of normalization.

Readers give records one by one; all else is done by batch: one scan finds the few texts that need
a look, and a row group is finished column by column.

Row groups are cut here, in one place, at a number of rows or bytes; every later table of the part
follows them. So the bytes of a part do not depend on workers or on how a read was buffered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from filters import normalize
from pipeline import schema
from pipeline.files import OUR_DISK, part_name, replacing
from pipeline.readers import Bad, Piece, Record, excerpt, place_of
from pipeline.readers.formats import read
from pipeline.readers.streams import DamagedShardError

if TYPE_CHECKING:
    from pipeline.settings import Input
    from pipeline.shards import Shard

ROW_GROUP_ROWS = 2_048
ROW_GROUP_BYTES = 4_000_000  # what a sweep holds at once; long documents would fill 16 MB
BATCH_BYTES = 1_000_000  # of records looked at together: they stay in the cache of a core

# Share of NUL, control and replacement characters from which bytes were no text in the encoding
# tried. Prose has none; a PNG read as latin-1 has about half.
NOT_TEXT_SHARE = 0.3

_NUM_NUL, _NUM_CONTROL = (
    list(normalize.COLUMNS).index(name) for name in ("num_nul", "num_control")
)
NORMALIZE_SCHEMA = pa.schema([(name, s.type) for name, s in normalize.COLUMNS.items()])

# A document on its way: id, file, offset, further columns, normalized text as UTF-8, its number of
# characters, what normalization counted.
Row = tuple[bytes, str, int, dict[str, Any], bytes, int, tuple[int, ...]]
T = TypeVar("T")


class UnreadableError(ValueError):
    """An input file fails; the message names it, the reason and the remedy."""


class Tally:
    """What became of the records of a shard."""

    def __init__(self) -> None:
        self.files: dict[str, Counter[str]] = {}
        self.reasons: Counter[str] = Counter()
        self.kept_fields: Counter[str] = Counter()
        self.rejects: list[dict[str, Any]] = []
        self.bad_files: list[dict[str, str]] = []


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
) -> dict[str, Any]:
    """Write the three tables of a shard; returns its counters.

    Args:
        tolerant: a file that fails costs what stands behind the fault, which is a reject.
        sampled: with `--limit`, tells by id whether a record is in the sample.
    """
    tally = Tally()

    def rows() -> Iterator[Row]:
        for piece in shard.pieces:
            tally.files.setdefault(piece.file, Counter(records=0, kept=0, rejected=0))
            records = _readable(read(piece, source, extractor), piece, tolerant, tally)
            for batch in _batches(records, lambda item: item.num_bytes, BATCH_BYTES):
                yield from _documents(batch, piece.file, source, hard, sampled, tally)

    documents_path, normalize_path, rejects_path = outputs(root, shard.part)
    totals = _write_documents(rows(), source, documents_path, normalize_path)
    with replacing(rejects_path) as temporary:
        rejects = pa.Table.from_pylist(tally.rejects, schema.REJECTS)
        pq.write_table(rejects, temporary, compression="zstd")
    return {
        **totals,
        "source": shard.source,
        "files": {file: dict(counted) for file, counted in tally.files.items()},
        "reasons": dict(tally.reasons),
        "kept_fields": dict(tally.kept_fields),
        "bad_files": tally.bad_files,
    }


def _readable(
    records: Iterator[Record | Bad], piece: Piece, tolerant: bool, tally: Tally
) -> Iterator[Record | Bad]:
    """The records, and where the file fails a last one that says so.

    Raises:
        UnreadableError: it fails, and that is not to be tolerated.
        OSError: what fails is ours: a full disk for what is unpacked, a shard that `spill` made.
    """
    try:
        yield from records
    except DamagedShardError:
        raise
    except Exception as error:  # whatever a decoder, a disk or a store makes of a bad file
        if isinstance(error, OSError) and error.errno in OUR_DISK:
            raise
        reason = f"{type(error).__name__}: {error}"
        if not tolerant:
            raise UnreadableError(
                f"{piece.path} cannot be read: {reason}; mend it, take it out of `files`, or let "
                "some fail with `max_bad_files` in corpus.yaml"
            ) from error
        tally.bad_files.append({"file": piece.file, "reason": reason})
        yield Bad(place_of(piece), 0, "bad_file", reason)


def _documents(
    batch: list[Record | Bad],
    file: str,
    source: Input,
    hard: tuple[str, ...],
    sampled: Callable[[bytes], bool] | None,
    tally: Tally,
) -> Iterator[Row]:
    """The documents of a batch; all else goes into the tally."""
    ids = schema.document_ids(source.source, file, [item.offset for item in batch])
    counted = tally.files[file]
    counted["records"] += len(batch)
    if sampled is not None:
        chosen = [sampled(doc_id) for doc_id in ids]
        counted["not_sampled"] += chosen.count(False)
        ids, batch = list(compress(ids, chosen)), list(compress(batch, chosen))
    # As a text, what is no record is empty, so that it gets its look with the others, in order.
    texts = [
        item.text.encode("utf-8", "surrogatepass") if isinstance(item, Record) else b""
        for item in batch
    ]
    kept = [True] * len(batch)
    counts = [normalize.NOTHING] * len(batch)
    for row in np.flatnonzero(~normalize.is_plain(texts)).tolist():
        item = batch[row]
        bad = item if isinstance(item, Bad) else None
        if isinstance(item, Record):
            text, counts[row] = normalize.normalize(item.text)
            bad = hard_reject(item, text, counts[row], hard)
            item.text, texts[row] = text, text.encode()
        if bad is not None:
            kept[row] = False
            tally.reasons[bad.reason] += 1
            tally.rejects.append(_reject(ids[row], source.source, file, bad))
    counted["rejected"] += kept.count(False)
    counted["kept"] += kept.count(True)
    records = cast("list[Record]", list(compress(batch, kept)))
    tally.kept_fields.update(chain.from_iterable(r.fields.get("meta", ()) for r in records))
    yield from zip(
        compress(ids, kept),
        repeat(file),
        [record.offset for record in records],
        [record.fields for record in records],
        compress(texts, kept),
        [len(record.text) for record in records],
        compress(counts, kept),
        strict=False,
    )


def hard_reject(
    record: Record, text: str, counts: tuple[int, ...], hard: tuple[str, ...]
) -> Bad | None:
    """The declared hard rules: what is no document whatever the mixture."""
    if "empty" in hard and not text.strip():
        return Bad(record.offset, record.num_bytes, "empty", "no text but white space")
    odd = counts[_NUM_NUL] + counts[_NUM_CONTROL] + text.count("\ufffd")
    length = len(record.text)
    if "not_text" in hard and odd > NOT_TEXT_SHARE * length:
        detail = f"{odd} of {length} characters are NUL, control or undecodable"
        return Bad(record.offset, record.num_bytes, "not_text", detail, excerpt(text))
    return None


def _reject(doc_id: bytes, source: str, file: str, bad: Bad) -> dict[str, Any]:
    return {
        "id": doc_id,
        "source": source,
        "file": file,
        "offset": bad.offset,
        "num_bytes": bad.num_bytes,
        "stage": "ingest",
        "reason": bad.reason,
        "detail": bad.detail,
        "excerpt": bad.excerpt,
    }


def _write_documents(
    rows: Iterable[Row], source: Input, documents: Path, counts: Path
) -> dict[str, int]:
    totals = Counter(documents=0, bytes=0, chars=0)
    with (
        replacing(documents) as documents_file,
        replacing(counts) as counts_file,
        pq.ParquetWriter(
            documents_file,
            schema.DOCUMENTS,
            compression="zstd",
            compression_level=1,
            use_dictionary=["source", "kind", "file", "domain", "charset", "licence", "truncated"],
        ) as documents_writer,
        pq.ParquetWriter(counts_file, NORMALIZE_SCHEMA, compression="zstd") as counts_writer,
    ):
        for group in _batches(rows, lambda row: len(row[4]), ROW_GROUP_BYTES):
            batch = _columns(group, source)
            documents_writer.write_batch(batch, row_group_size=len(group))
            counts_writer.write_batch(_counts(group), row_group_size=len(group))
            totals["documents"] += len(group)
            totals["bytes"] += pc.sum(batch["num_bytes"]).as_py()
            totals["chars"] += pc.sum(batch["num_chars"]).as_py()
    return dict(totals)


def _columns(group: list[Row], source: Input) -> pa.RecordBatch:
    """Rows as columns of DOCUMENTS; one that no record fills is free."""
    ids, files, offsets, fields, texts, num_chars, _ = zip(*group, strict=True)
    columns: dict[str, Any] = {
        "id": ids,
        "content_hash": [schema.text_hash(text) for text in texts],
        "source": pa.repeat(source.source, len(group)),
        "kind": pa.repeat(source.kind, len(group)),
        "file": files,
        "offset": offsets,
        "text": _strings(texts),
        "num_bytes": [len(text) for text in texts],
        "num_chars": num_chars,
        "meta": _maps([kept.get("meta", {}) for kept in fields]),
    }
    for name in set().union(*fields) - {"meta"}:
        columns[name] = [kept.get(name) for kept in fields]
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(len(group), field.type)
        for field in schema.DOCUMENTS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.DOCUMENTS)


def _strings(texts: Sequence[bytes]) -> pa.Array:
    """Texts that are known to be UTF-8, as a string column; Arrow would check each again."""
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    data = pa.py_buffer(b"".join(texts))
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), data)


def _maps(rows: list[dict[str, str]]) -> pa.Array:
    """Dictionaries as a map column, without a tuple an item: the garbage collector counts them."""
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    keys = pa.array(chain.from_iterable(rows), pa.string())
    values = pa.array(chain.from_iterable(row.values() for row in rows), pa.string())
    return pa.MapArray.from_arrays(pa.array(ends), keys, values)


def _counts(group: list[Row]) -> pa.RecordBatch:
    """What normalization counted, as columns."""
    counts = np.zeros((len(NORMALIZE_SCHEMA), len(group)), np.int32)
    for row, (*_, found) in enumerate(group):
        if found is not normalize.NOTHING:
            counts[:, row] = found
    return pa.RecordBatch.from_arrays(list(map(pa.array, counts)), schema=NORMALIZE_SCHEMA)


def _batches(
    items: Iterable[T], num_bytes: Callable[[T], int], max_bytes: int
) -> Iterator[list[T]]:
    """Up to ROW_GROUP_ROWS items, or those with which `max_bytes` are reached."""
    batch: list[T] = []
    size = 0
    for item in items:
        batch.append(item)
        size += num_bytes(item)
        if len(batch) == ROW_GROUP_ROWS or size >= max_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
