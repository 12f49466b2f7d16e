"""Write the files of a part again without what a corpus was told to forget.

Rows stay where they are: of a document its identity is left (id, content hash, place in its file),
all else is null, its tokens, signals and counts too. So no other row moves, row groups and joins
hold, and the bytes are those that `prepare` would write, which leaves the same rows null. Files are
replaced one by one, then their commit record, under the same fingerprint: a next run makes nothing.

It may be killed anywhere and called again: which rows go follows from the list alone, and a file
that lacks them already is written with the same bytes once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import commits, schema, store
from pipeline.attach import attached_groups
from pipeline.commits import location
from pipeline.files import part_name, part_number, read_sealed, replacing
from pipeline.ranges import open_file
from pipeline.tables import without
from pipeline.transforms import documents

Mask = npt.NDArray[np.bool_]
Entry = dict[str, Any]


@dataclass(frozen=True)
class Gone:
    """What goes from a part."""

    ids: pa.Array
    contents: pa.Array
    rows: Mask  # of its documents


# --- one file -------------------------------------------------------------------------------------


def _parquet(
    path: Path,
    change: Callable[[pa.RecordBatch, int], pa.RecordBatch],
    columns: pa.Schema | None = None,
    **options: Any,
) -> None:
    """Write a table again, row group by row group; `change` gets its first row too. A row group of
    which nothing is left goes.

    Args:
        columns: as it was first written, where Parquet has another type: it has no seconds.
    """
    file, first = pq.ParquetFile(path), 0
    columns = columns or file.schema_arrow
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, columns, **options) as writer,
    ):
        for number in range(file.num_row_groups):
            table = file.read_row_group(number).cast(columns)
            arrays = [column.combine_chunks() for column in table.columns]
            changed = change(pa.RecordBatch.from_arrays(arrays, schema=columns), first)
            if len(changed) or not len(table):
                writer.write_batch(changed, max(1, len(changed)))
            first += len(table)


def _documents(path: Path, gone: Gone) -> None:
    def change(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        return documents.forgotten(batch, gone.rows[first : first + len(batch)])

    _parquet(path, change, schema.DOCUMENTS, **documents.OPTIONS)


def _aligned(path: Path, gone: Gone) -> None:
    """Signals and counts: null."""

    def change(batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        return without(batch, gone.rows[first : first + len(batch)])

    _parquet(path, change, compression="zstd")


def _tokens(path: Path, gone: Gone) -> None:
    if path.suffix != ".arrow":
        _aligned(path, gone)  # counts
        return
    with pa.memory_map(str(path)) as source, replacing(path) as temporary:
        reader, first = pa.ipc.open_file(source), 0
        with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, reader.schema) as out:
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                out.write_batch(without(batch, gone.rows[first : first + len(batch)]))
                first += len(batch)


def _edits(path: Path, gone: Gone) -> None:
    _parquet(path, lambda batch, _: _drop(batch, "id", gone.ids), compression="zstd")


def _nominees(path: Path, gone: Gone) -> None:
    _parquet(path, lambda batch, _: _drop(batch, "content_hash", gone.contents), compression="zstd")


def _rejects(path: Path, gone: Gone) -> None:
    def change(batch: pa.RecordBatch, _: int) -> pa.RecordBatch:
        out = np.asarray(pc.is_in(batch["id"], value_set=gone.ids))
        arrays = [
            without(batch[name], out) if name in ("detail", "excerpt") else batch[name]
            for name in batch.schema.names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    _parquet(path, change, compression="zstd")


def _drop(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    return batch.filter(pc.invert(pc.is_in(batch[name], value_set=values)))


# Of a part, what holds text or is made of it, by the beginning of its name. All else in a commit
# record of a part (band keys, sketches, keys of lines, shingles of candidates, matches) is hashes.
REWRITES: dict[str, Callable[[Path, Gone], None]] = {
    "documents/": _documents,
    "signals/": _aligned,
    "copies/": _aligned,
    "edits/": _edits,
    "places/": _edits,
    "substrings/": _edits,
    "tokens/": _tokens,
    "rejects/": _rejects,
    "joins/nominees/": _nominees,
}


# --- a part ---------------------------------------------------------------------------------------


def touched(root: Path, rows: pa.Table) -> Iterator[tuple[int, Gone]]:
    """The parts that hold one of these documents or rejects (schema.FORGOTTEN)."""
    ids = rows["id"].combine_chunks().unique()
    contents = rows["content_hash"].combine_chunks().drop_null().unique()
    for part in _parts(root):
        stored, rejects = (
            _columns(root, part, table, names)
            for table, names in (("documents", ["id", "content_hash"]), ("rejects", ["id"]))
        )
        gone = pc.or_(
            pc.is_in(stored["id"], value_set=ids),
            pc.is_in(stored["content_hash"], value_set=contents),
        )
        mask = np.asarray(gone)
        if mask.any() or pc.any(pc.is_in(rejects["id"], value_set=ids)).as_py():
            here = pa.chunked_array([*stored["id"].filter(gone).chunks, ids]).combine_chunks()
            yield part, Gone(here.unique(), contents, mask)


def _parts(root: Path) -> list[int]:
    return sorted(part_number(path) for path in (root / "stats" / "ingest").glob("part-*.json"))


def _columns(root: Path, part: int, table: str, names: list[str]) -> pa.Table:
    """Of a store by ranges."""
    with open_file(location(root, "ingest", part, f"{table}/{part_name(part)}")) as file:
        return pq.read_table(file, columns=names)


def rewrite(root: Path, part: int, gone: Gone) -> None:
    """Write all that was made of a part again, without what goes, and its commit records."""
    attached = {f"signals/{name}/" for name in attached_groups(root)}  # made again: see attach.py
    name = part_name(part, "json")
    for path in sorted((root / "stats").rglob(name)):
        record = read_sealed(path)
        if record is None:
            continue  # damaged: `prepare` makes the part again, without what is listed
        outputs = {
            output: change
            for output in record["outputs"]
            for begin, change in REWRITES.items()
            if output.startswith(begin) and not any(map(output.startswith, attached))
        }
        if not outputs:
            continue
        if (mirror := store.of(root)) is not None:
            store.fetch(mirror, {output: record["outputs"][output] for output in outputs})
        for output, change in outputs.items():
            change(root / output, gone)
        record["counters"] |= _counters(root, record)
        commits.amend(root, record, [root / output for output in outputs])


def _counters(root: Path, record: Entry) -> dict[str, Any]:
    """What the counters of a record are now, counted anew: a second call changes nothing."""
    tables = {name: root / name for name in record["outputs"] if name.endswith(".parquet")}
    stage = str(record["stage"])
    if stage == "ingest":
        return _ingested(record["counters"], tables[f"documents/{part_name(record['part'])}"])
    if stage.startswith("edits/"):  # of some with the places beside them
        edited = pq.read_table(tables[f"{stage}/{part_name(record['part'])}"])
        return _edited(record["counters"], edited)
    (path,) = tables.values()
    if stage.startswith("tokens/"):
        counts = pq.read_table(path)
        names = {"tokens": "num_tokens", "special_literals": "num_special_literals"}
        return {key: pc.sum(counts[name], min_count=0).as_py() for key, name in names.items()}
    if stage == "nominees":
        return {"nominees": pq.read_metadata(path).num_rows}
    if stage == "substrings":
        ids = pq.read_table(path, columns=["id"])["id"]
        return {"documents": pc.count_distinct(ids).as_py(), "runs": len(ids)}
    return {}


def _ingested(before: dict[str, Any], path: Path) -> dict[str, Any]:
    table = pq.read_table(path, columns=["file", "num_bytes", "num_chars"])
    gone = Counter(table.filter(pc.is_null(table["num_bytes"]))["file"].to_pylist())
    files = {file: Counter(counted) for file, counted in before["files"].items()}
    for file, num in gone.items():
        counted = files[file]
        counted["kept"] += counted["forgotten"] - num
        counted["forgotten"] = num
    return {
        "bytes": pc.sum(table["num_bytes"], min_count=0).as_py(),
        "chars": pc.sum(table["num_chars"], min_count=0).as_py(),
        "files": {file: dict(counted) for file, counted in files.items()},
    }


def _edited(before: dict[str, Any], table: pa.Table) -> dict[str, Any]:
    kinds = Counter(f"kind.{kind}" for kind in table["kind"].to_pylist())
    spans = pc.subtract(table["end"], table["start"])
    return {
        **{key: kinds[key] for key in before if key.startswith("kind.")},
        "edited_documents": pc.count_distinct(table["id"]).as_py(),
        "removed_bytes": pc.sum(spans, min_count=0).as_py(),
        "added_bytes": pc.sum(pc.binary_length(table["replacement"]), min_count=0).as_py(),
    }
