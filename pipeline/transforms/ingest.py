"""Ingest: records of a shard to `documents`, `rejects` and the counts of normalization.

Row groups are cut here, in one place, at a number of rows or bytes; every later table of the part
follows them. So the bytes of a part do not depend on workers or on how a read was buffered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from filters import normalize
from pipeline import schema
from pipeline.corpus import part_name
from pipeline.files import replacing
from pipeline.readers import Bad, Record, excerpt
from pipeline.readers.formats import read

if TYPE_CHECKING:
    from pipeline.settings import Input
    from pipeline.shards import Shard

ROW_GROUP_ROWS = 2_048
ROW_GROUP_BYTES = 16_000_000

# Share of NUL, control and replacement characters from which bytes were no text in the encoding
# tried. Prose has none; a PNG read as latin-1 has about half.
NOT_TEXT_SHARE = 0.3

_NUM_NUL, _NUM_CONTROL = (
    list(normalize.COLUMNS).index(name) for name in ("num_nul", "num_control")
)
NORMALIZE_SCHEMA = pa.schema([(name, s.type) for name, s in normalize.COLUMNS.items()])


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
) -> dict[str, Any]:
    """Write the three tables of a shard; returns its counters.

    Args:
        sampled: with `--limit`, tells by id whether a record is in the sample.
    """
    counters: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    kept_fields: Counter[str] = Counter()
    rejects: list[dict[str, Any]] = []

    def documents() -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
        for piece in shard.pieces:
            counted = counters.setdefault(piece.file, Counter(records=0, kept=0, rejected=0))
            for record in read(piece, source, extractor):
                counted["records"] += 1
                doc_id = schema.document_id(shard.source, piece.file, record.offset)
                if sampled is not None and not sampled(doc_id):
                    counted["not_sampled"] += 1
                    continue
                if isinstance(record, Record):
                    text, counts = normalize.normalize(record.text)
                    row = document(doc_id, source, piece.file, record, text)
                    bad = hard_reject(record, text, counts, hard)
                if isinstance(record, Bad) or bad is not None:
                    reject = record if isinstance(record, Bad) else bad
                    assert reject is not None
                    counted["rejected"] += 1
                    reasons[reject.reason] += 1
                    rejects.append(_reject(doc_id, shard.source, piece.file, reject))
                    continue
                counted["kept"] += 1
                kept_fields.update(list(record.fields.get("meta", {})))
                yield row, counts

    documents_path, normalize_path, rejects_path = outputs(root, shard.part)
    totals = _write_documents(documents(), documents_path, normalize_path)
    with replacing(rejects_path) as temporary:
        pq.write_table(pa.Table.from_pylist(rejects, schema.REJECTS), temporary, compression="zstd")
    files = {file: dict(counted) for file, counted in counters.items()}
    return {
        **totals,
        "source": shard.source,
        "files": files,
        "reasons": dict(reasons),
        "kept_fields": dict(kept_fields),
    }


def document(doc_id: bytes, source: Input, file: str, record: Record, text: str) -> dict[str, Any]:
    """A row of `documents`."""
    encoded = text.encode()
    return {
        **record.fields,
        "id": doc_id,
        "content_hash": schema.text_hash(encoded),
        "source": source.source,
        "kind": source.kind,
        "file": file,
        "offset": record.offset,
        "text": text,
        "num_bytes": len(encoded),
        "num_chars": len(text),
        "meta": list(record.fields.get("meta", {}).items()),
    }


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
    rows: Iterable[tuple[dict[str, Any], tuple[int, ...]]], documents: Path, counts: Path
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
        for group in _row_groups(rows):
            batch = _columns([row for row, _ in group])
            documents_writer.write_batch(batch, row_group_size=len(group))
            columns = np.array([c for _, c in group], dtype=np.int64).T
            counts_writer.write_batch(
                pa.RecordBatch.from_arrays(
                    [
                        pa.array(c).cast(f.type)
                        for c, f in zip(columns, NORMALIZE_SCHEMA, strict=True)
                    ],
                    schema=NORMALIZE_SCHEMA,
                ),
                row_group_size=len(group),
            )
            totals["documents"] += len(group)
            totals["bytes"] += sum(row["num_bytes"] for row, _ in group)
            totals["chars"] += sum(row["num_chars"] for row, _ in group)
    return dict(totals)


def _columns(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Rows as columns of DOCUMENTS; one that no row fills, as half of them for JSONL, is free."""
    filled = set().union(*rows)
    arrays = [
        pa.array([row.get(field.name) for row in rows], field.type)
        if field.name in filled
        else pa.nulls(len(rows), field.type)
        for field in schema.DOCUMENTS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.DOCUMENTS)


def _row_groups(
    rows: Iterable[tuple[dict[str, Any], tuple[int, ...]]],
) -> Iterator[list[tuple[dict[str, Any], tuple[int, ...]]]]:
    group: list[tuple[dict[str, Any], tuple[int, ...]]] = []
    num_bytes = 0
    for row in rows:
        group.append(row)
        num_bytes += row[0]["num_bytes"]
        if len(group) == ROW_GROUP_ROWS or num_bytes >= ROW_GROUP_BYTES:
            yield group
            group, num_bytes = [], 0
    if group:
        yield group
