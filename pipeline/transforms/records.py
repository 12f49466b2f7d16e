"""Records, one by one or as columns, to documents; what is none becomes a reject.

All is done by batch: one scan finds the few texts that need a look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain, compress, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from filters import normalize
from pipeline import schema
from pipeline.readers import Bad, Record, Rows, excerpt
from pipeline.transforms import documents

if TYPE_CHECKING:
    from pipeline.settings import Input

# Share of NUL, control and replacement characters from which bytes were no text in the encoding
# tried. Prose has none; a PNG read as latin-1 has about half.
NOT_TEXT_SHARE = 0.3

_NUM_NUL, _NUM_CONTROL = (
    list(normalize.COLUMNS).index(name) for name in ("num_nul", "num_control")
)


class Tally:
    """What became of the records of a shard."""

    def __init__(self) -> None:
        self.files: dict[str, Counter[str]] = {}
        self.reasons: Counter[str] = Counter()
        self.kept_fields: Counter[str] = Counter()
        self.rejects: list[dict[str, Any]] = []
        self.bad_files: list[dict[str, str]] = []


class Origin(NamedTuple):
    """Where records come from and what is done with them."""

    file: str
    source: Input
    hard: tuple[str, ...]
    sampled: Callable[[bytes], bool] | None
    tally: Tally


def documents_of(found: Rows | list[Record | Bad], origin: Origin) -> pa.RecordBatch:
    """The documents among what was read, in order; all else goes into the tally."""
    if isinstance(found, list):
        return _of_records(found, origin)
    plain = _of_columns(found.columns, origin)
    if not found.others:
        return plain
    both = pa.concat_batches([plain, _of_records(found.others, origin)])
    return both.take(pc.sort_indices(both["offset"]))


def _of_columns(columns: dict[str, pa.Array], origin: Origin) -> pa.RecordBatch:
    ids = schema.document_ids(origin.source.source, origin.file, columns["offset"].to_pylist())
    counted = origin.tally.files[origin.file]
    counted["records"] += len(ids)
    if origin.sampled is not None:
        chosen = [origin.sampled(doc_id) for doc_id in ids]
        counted["not_sampled"] += chosen.count(False)
        ids = list(compress(ids, chosen))
        columns = {name: column.filter(pa.array(chosen)) for name, column in columns.items()}
    counted["kept"] += len(ids)
    if "meta" in columns:
        for kept in pc.value_counts(columns["meta"].keys).to_pylist():
            origin.tally.kept_fields[kept["values"]] += kept["counts"]
    text = columns["text"]
    ends, data = np.frombuffer(text.buffers()[1], np.int32).tolist(), memoryview(text.buffers()[2])
    hashes = schema.text_hashes(data[a:b] for a, b in pairwise(ends))
    return _batch(columns, ids, hashes, origin)


def _of_records(items: list[Record | Bad], origin: Origin) -> pa.RecordBatch:
    tally = origin.tally
    ids = schema.document_ids(origin.source.source, origin.file, [item.offset for item in items])
    counted = tally.files[origin.file]
    counted["records"] += len(items)
    if origin.sampled is not None:
        chosen = [origin.sampled(doc_id) for doc_id in ids]
        counted["not_sampled"] += chosen.count(False)
        ids, items = list(compress(ids, chosen)), list(compress(items, chosen))
    # As a text, what is no record is empty, so that it gets its look with the others, in order.
    texts = [
        item.text.encode("utf-8", "surrogatepass") if isinstance(item, Record) else b""
        for item in items
    ]
    kept = [True] * len(items)
    counts = np.zeros((len(items), len(normalize.COLUMNS)), np.int32)
    for row in np.flatnonzero(~normalize.is_plain(texts)).tolist():
        item = items[row]
        bad = item if isinstance(item, Bad) else None
        if isinstance(item, Record):
            text, counts[row] = normalize.normalize(item.text)
            bad = hard_reject(item, text, counts[row], origin.hard)
            item.text, texts[row] = text, text.encode()
        if bad is not None:
            kept[row] = False
            tally.reasons[bad.reason] += 1
            tally.rejects.append(_reject(ids[row], origin.source.source, origin.file, bad))
    counted["rejected"] += kept.count(False)
    counted["kept"] += kept.count(True)
    records = cast("list[Record]", list(compress(items, kept)))
    ids, texts = list(compress(ids, kept)), list(compress(texts, kept))
    fields = [record.fields for record in records]
    tally.kept_fields.update(chain.from_iterable(kept.get("meta", ()) for kept in fields))
    columns: dict[str, Any] = {
        "offset": [record.offset for record in records],
        "text": documents.strings(texts),
        "num_bytes": [len(text) for text in texts],
        "num_chars": [len(record.text) for record in records],
        "meta": documents.maps([kept.get("meta", {}) for kept in fields]),
        **dict(zip(normalize.COLUMNS, counts[kept].T, strict=True)),
    }
    for name in set().union(*fields) - {"meta"}:
        columns[name] = [kept.get(name) for kept in fields]
    return _batch(columns, ids, schema.text_hashes(texts), origin)


def _batch(
    columns: dict[str, Any], ids: list[bytes], hashes: list[bytes], origin: Origin
) -> pa.RecordBatch:
    """With what all documents of a file share."""
    shared = {"source": origin.source.source, "kind": origin.source.kind, "file": origin.file}
    same = {name: pa.repeat(value, len(ids)) for name, value in shared.items()}
    return documents.batch({**columns, **same, "id": ids, "content_hash": hashes}, len(ids))


def hard_reject(
    record: Record, text: str, counts: Sequence[int], hard: tuple[str, ...]
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
