"""Long stretches of text that stand in several places, within documents and across them.

    wind       a part: names of stretches that stand for its texts, by winnowing, sorted
    group      a partition of the names: those that stand in several places
    extend     a part: stretches by which runs of them may go on, named
    group      likewise
    place      a part: runs, each with all that a mixture needs to say which of its places stays
    edit, measure    a part: what goes when the whole corpus is selected, and how much that is

Text is read in its own part alone: names of 128 bits say what is equal, as they do of documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dedup import repeats, winnowing
from filters.columns import Signal
from filters.edits import Edits, merged
from kernels.arrow import string_buffers
from pipeline import schema
from pipeline.files import part_name
from pipeline.tables import (
    column,
    first_of_each,
    halves_of,
    names_of,
    read_columns,
    spread,
    without,
    write_aligned,
    write_columns,
    write_table,
)
from pipeline.transforms import edit as edited
from pipeline.transforms import measure as measured
from pipeline.transforms.near import ROW

if TYPE_CHECKING:
    from pipeline.dedup_settings import Substrings
    from pipeline.transforms.sweep import Batch, Stage

NAME = "substrings"  # of the table, the edits and the signal group
ROUNDS = ("stretches", "extensions")  # folders of what is grouped, and in which order

COLUMNS: dict[str, Signal] = {
    "score": Signal(pa.float32(), "byte", "share that stands before, here or elsewhere", ""),
    "repeated": Signal(pa.float32(), "byte", "share that stands more than once", ""),
    "most_copies": Signal(pa.int32(), "text", "most places in which a stretch of it stands", ""),
}


def named_outputs(root: Path, which: str, part: int) -> list[Path]:
    return [root / "joins" / which / part_name(part, "arrow")]


def grouped_output(root: Path, which: str, partition: int) -> Path:
    return root / "joins" / f"grouped_{which}" / part_name(partition, "arrow")


# --- wind -----------------------------------------------------------------------------------------


def wind_outputs(root: Path, part: int) -> list[Path]:
    contents = root / "joins" / "contents" / part_name(part, "arrow")
    return [*named_outputs(root, "stretches", part), contents]


def wind(root: Path, substrings: Substrings, part: int) -> Stage:
    """Write the stretches of the contents of a part, and the contents of its documents."""
    length, window = winnowing.sizes(substrings.size)
    found, contents, row = [], [pa.array([], schema.HASH)], 0
    while (batch := (yield)) is not None:
        found.append(_wound(batch, length, window, row))
        contents.append(batch.contents)
        row += len(batch.texts)
    stretches_path, contents_path = wind_outputs(root, part)
    hashes = pa.chunked_array(contents).combine_chunks()
    write_columns(contents_path, schema.CONTENTS, list(halves_of(hashes).T.astype(np.uint64)))
    is_first = np.zeros(row, np.bool_)
    is_first[first_of_each(pa.chunked_array(contents))] = True
    num = _write_named(stretches_path, found, is_first)
    return {"documents": row, "stretches": num}


def _wound(batch: Batch, length: int, window: int, row: int) -> winnowing.Stretches:
    found = winnowing.winnowed(batch.texts.data, batch.texts.offsets, length, window)
    return found._replace(rows=found.rows + row)


def _write_named(
    path: Path, found: list[winnowing.Stretches], of: npt.NDArray[np.bool_] | None = None
) -> int:
    """Write stretches in the order of their names; only those `of` some rows, if given."""
    nothing = [np.empty(0, np.uint64)] * 2 + [np.empty(0, np.int64)] * 2
    columns = [np.concatenate(several) for several in zip(nothing, *found, strict=True)]
    if of is not None:
        columns = [values[of[columns[2]]] for values in columns]
    order = np.argsort(columns[0], kind="stable")
    write_columns(path, schema.STRETCHES, [values[order] for values in columns])
    return len(order)


# --- extend ---------------------------------------------------------------------------------------


def extend(root: Path, substrings: Substrings, part: int, partitions: int) -> dict[str, Any]:
    """Name the stretches of a part by which runs may go on where winnowing took none."""
    length, window = winnowing.sizes(substrings.size)
    found = _placed(root, "stretches", part, partitions)
    begins, lasts = _open_ends(found, length, window)
    named = []
    for texts, row, _ in _texts(root, part, np.union1d(begins.rows, lasts.rows)):
        data, offsets = string_buffers(texts)
        before, after = (_inside(ends, row, row + len(texts)) for ends in (begins, lasts))
        around = repeats.around(data, offsets, before, after, length, window)
        stretches = winnowing.named(data, offsets, *around, length)
        named.append(stretches._replace(rows=stretches.rows + row))
    (path,) = named_outputs(root, "extensions", part)
    return {"ends": len(begins.rows) + len(lasts.rows), "extensions": _write_named(path, named)}


def _open_ends(found: Placed, length: int, window: int) -> tuple[Placed, Placed]:
    """The first stretches of runs, and the last ones, beyond which more may repeat."""
    within = repeats.Within(found.rows, found.starts, found.upper, found.lower)
    begins, lasts = (found.take(which) for which in _runs(found, length))
    before, after = begins.starts, lasts.starts + length
    open_before = ~within.hold(begins.rows, before - window + 1, before, length)
    open_after = ~within.hold(lasts.rows, after, after + window - 1, length)
    return begins.take(open_before), lasts.take(open_after)


def _inside(
    placed: Placed, begin: int, end: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows from `begin` on, and starts, of those in rows `begin` to `end`."""
    cut = slice(*np.searchsorted(placed.rows, [begin, end]))
    return placed.rows[cut] - begin, placed.starts[cut]


class Placed(NamedTuple):
    """What is repeated of a part, by row and start: see schema.REPEATED."""

    rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    upper: npt.NDArray[np.uint64]
    lower: npt.NDArray[np.uint64]
    copies: npt.NDArray[np.int64]
    first: npt.NDArray[np.bool_]
    members: npt.NDArray[np.uint64]
    places: npt.NDArray[np.uint64]

    def take(self, which: npt.NDArray[Any]) -> Placed:
        return Placed(*(values[which] for values in self))


def _placed(root: Path, which: str, part: int, partitions: int) -> Placed:
    slices = []
    for partition in range(partitions):
        columns = read_columns(grouped_output(root, which, partition), schema.REPEATED)
        cut = slice(*np.searchsorted(columns[0], np.array([part << 32, part + 1 << 32], np.uint64)))
        slices.append([values[cut] for values in columns])
    docs, *others = (np.concatenate(several) for several in zip(*slices, strict=True))
    rows, starts = (docs & ROW).astype(np.int64), others[0].astype(np.int64)
    upper, lower, copies, first, members, places = others[1:]
    found = Placed(
        rows, starts, upper, lower, copies.astype(np.int64), first.astype(bool), members, places
    )
    return found.take(np.lexsort((starts, rows)))


def _runs(found: Placed, length: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return repeats.runs(found.rows, found.starts, found.members, found.places, length)


def _texts(
    root: Path, part: int, rows: npt.NDArray[np.int64]
) -> Iterator[tuple[pa.Array, int, slice]]:
    """Of each row group that holds some of these rows, which ascend: its texts, its first row, and
    which of the rows it holds."""
    documents = pq.ParquetFile(root / "documents" / part_name(part))
    begin = 0
    for i in range(documents.num_row_groups):
        end = begin + documents.metadata.row_group(i).num_rows
        inside = slice(*np.searchsorted(rows, [begin, end]).tolist())
        if inside.start < inside.stop:
            yield column(documents, i, "text").fill_null(""), begin, inside  # null: forgotten
        begin = end


# --- place ----------------------------------------------------------------------------------------


def place_outputs(root: Path, part: int) -> list[Path]:
    return [root / NAME / part_name(part)]


def place(root: Path, substrings: Substrings, part: int, partitions: int) -> dict[str, Any]:
    """Write the runs of all documents of a part; those of equal content have the same."""
    length, window = winnowing.sizes(substrings.size)
    found, ends = _all_runs(root, part, partitions, length)
    most = repeats.slack(length, window)
    starts = found.starts.copy()
    for texts, first, which in _texts(root, part, found.rows):
        data, offsets = string_buffers(texts)
        starts[which], ends[which] = repeats.rounded(
            data, offsets, found.rows[which] - first, found.starts[which], ends[which], most
        )
    documents = pq.ParquetFile(root / "documents" / part_name(part)).read(["id", "content_hash"])
    codes = np.asarray(documents["content_hash"].combine_chunks().dictionary_encode().indices)
    rows, at = spread(found.rows, np.unique(codes, return_index=True)[1][codes])
    names = np.stack([found.upper[at], found.lower[at]], axis=1).astype(">u8")
    keys = pa.Array.from_buffers(schema.HASH, len(at), [None, pa.py_buffer(names.tobytes())])
    ids = documents["id"].combine_chunks().take(pa.array(rows))
    places = [pa.array(starts[at]), pa.array(ends[at])]
    known = [keys, pa.array(found.copies[at]), pa.array(found.first[at])]
    write_table(place_outputs(root, part)[0], schema.SUBSTRINGS, [ids, *places, *known])
    return {"documents": len(np.unique(rows)), "runs": len(rows)}


def _all_runs(
    root: Path, part: int, partitions: int, length: int
) -> tuple[Placed, npt.NDArray[np.int64]]:
    """By row: the first stretch of each run, and where the run ends. The last bit of a name becomes
    the number of its round, for either knows of other places."""
    rounds, ends = [], []
    for number, which in enumerate(ROUNDS):
        placed = _placed(root, which, part, partitions)
        lower = placed.lower >> np.uint64(1) << np.uint64(1) | np.uint64(number)
        firsts, lasts = _runs(placed, length)
        rounds.append(placed._replace(lower=lower).take(firsts))
        ends.append(placed.starts[lasts] + length)
    found = Placed(*(np.concatenate(both) for both in zip(*rounds, strict=True)))
    end = np.concatenate(ends)
    order = np.lexsort((found.lower, found.upper, end, found.starts, found.rows))
    return found.take(order), end[order]


# --- edit, measure --------------------------------------------------------------------------------


def edit(root: Path, part: int) -> dict[str, Any]:
    """Write edits/substrings: what goes when the whole corpus is selected."""
    runs = pq.read_table(place_outputs(root, part)[0]).combine_chunks()
    runs = runs.filter(pa.array(~np.asarray(runs["first"])))
    codes = np.asarray(runs["id"].combine_chunks().dictionary_encode().indices)
    edits = edits_of_runs(codes, np.asarray(runs["start"]), np.asarray(runs["end"]))
    ids = runs["id"].combine_chunks().unique()
    (path,) = edited.outputs(root, NAME, part)
    write_table(path, schema.EDITS, edited.rows_of(ids, edits).columns)
    documents = pq.ParquetFile(root / "documents" / part_name(part))
    return {"documents": documents.metadata.num_rows, **edited.counted(edits)}


def edits_of_runs(
    rows: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> Edits:
    """Runs of texts, by text, that go; where some overlap or touch they are one edit."""
    kinds, nothing = (pa.array([word] * len(rows), pa.string()) for word in (schema.SUBSTRING, ""))
    return merged([Edits(rows.astype(np.int64), starts, ends, kinds, nothing)])


def measure(root: Path, part: int) -> dict[str, Any]:
    """Write signals/substrings, in the row groups of documents."""
    documents = pq.ParquetFile(root / "documents" / part_name(part))
    table = documents.read(["id", "num_bytes"])
    ids = names_of(table["id"])
    runs = pq.read_table(place_outputs(root, part)[0]).combine_chunks()
    order = np.argsort(ids, kind="stable")
    rows = order[np.searchsorted(ids[order], names_of(runs["id"]))]
    starts, ends, first = (np.asarray(runs[name]) for name in ("start", "end", "first"))
    sizes = np.asarray(table["num_bytes"].fill_null(0)).astype(np.float64)
    shares = []
    for which in (~first, np.ones(len(rows), np.bool_)):
        edits = edits_of_runs(rows[which], starts[which], ends[which])
        covered = np.bincount(edits.rows, edits.ends - edits.starts, len(ids))
        shares.append((covered / np.maximum(sizes, 1)).astype(np.float32))
    most = np.zeros(len(ids), np.int32)
    np.maximum.at(most, rows, np.asarray(runs["copies"]).astype(np.int32))
    columns = pa.schema([(name, signal.type) for name, signal in COLUMNS.items()])
    arrays = [pa.array(values) for values in (*shares, most)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=columns)
    batch = without(batch, np.asarray(table["num_bytes"].is_null()))
    write_aligned(measured.outputs(root, NAME, part)[0], documents, batch)
    return {"documents": len(ids)}
