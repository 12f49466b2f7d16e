"""What of a part stands in other documents too: signal group `across`, and the edits of its units.

Made from the answers of across.py and from the places that the records of the part have: the text
is not read again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from filters.columns import Signal
from filters.edits import Edits, merged
from pipeline import schema
from pipeline.files import part_name, replacing
from pipeline.tables import read_columns, without
from pipeline.transforms import across, edit, measure, pieces

if TYPE_CHECKING:
    from filters.segments import Texts
    from filters.signals import Columns
    from pipeline.settings import Across

NAME = "across"  # of the signal group
Numbers = npt.NDArray[np.int64]
KINDS = ("", "site_line", "repeated_line", "repeated_paragraph")
SOURCE = {
    "site_lines": "CCNet, Wenzek et al. 2020; boilerplate of a site: assay",
    "repeated_lines": "C4, Raffel et al. 2020; TFDS c4_utils.py",
    "repeated_paragraphs": "CCNet, Wenzek et al. 2020; dolma deduper",
}
COUNTED = {"site_lines": "lines", "repeated_lines": "lines", "repeated_paragraphs": "paragraphs"}


def columns(settings: Across) -> dict[str, Signal]:
    """Those of the units that are looked for, then of all together."""
    found = {}
    for unit in settings.units:
        what, source = COUNTED[unit], SOURCE[unit]
        found[f"num_{unit}"] = Signal(
            pa.int32(), what, f"{what} that `across.{unit}` finds, the kept copy too", source
        )
        found[f"{unit}_share"] = Signal(pa.float32(), "bytes", "of the text, in them", source)
    found["repeated_share"] = Signal(pa.float32(), "bytes", "of the text, in any of these", "assay")
    found["most_documents"] = Signal(
        pa.int32(), "text", "most documents that one of them stands in", "assay"
    )
    return found


def not_by_text(texts: Texts, columns: Columns) -> NoReturn:
    """In place of what measures or edits a text by itself."""
    raise AssertionError("made from all parts: see PART_STAGES in pipeline/stages.py")


class Found(NamedTuple):
    """Pieces of a part that stand in enough documents, in order of rows and bytes."""

    row: pieces.Column
    unit: pieces.Column
    start: pieces.Column
    end: pieces.Column
    before: pieces.Column  # bytes of blank lines
    after: pieces.Column
    documents: pieces.Column
    kept: pieces.Column

    def take(self, which: npt.NDArray[Any]) -> Found:
        return Found(*(column[which] for column in self))


def found(root: Path, settings: Across, part: int, num: int) -> Found:
    """From the `num` partitions; rows are those of all documents, copies too."""
    borders = np.array([part, part + 1], np.uint64) << np.uint64(32)
    slices = []
    for partition in range(num):
        answers = read_columns(across.output(root, partition), schema.PIECES_FOUND)
        inside = slice(*np.searchsorted(answers[0], borders))
        slices.append([column[inside].copy() for column in answers])
    place, documents, kept = map(np.concatenate, zip(*slices, strict=True))
    pieces_path, documents_path = pieces.outputs(root, part)
    stored = pieces.Records(*read_columns(pieces_path, schema.PIECES))
    records = stored.take((place & np.uint64(0xFFFFFFFF)).astype(np.int64))
    whole = [records.row, pieces.unit_of(records.low), *records[3:], documents]
    answered = Found._make([*(column.astype(np.int64) for column in whole), kept == 1])
    _, firsts = read_columns(documents_path, schema.PIECE_DOCUMENTS)
    return _of_all(_enough(answered, settings, len(firsts)), firsts.astype(np.int64))


def _enough(answered: Found, settings: Across, rows: int) -> Found:
    """Without sites, and without lines that stand in too small a share of the documents of one."""
    if (lines := settings.site_lines) is None:
        return answered
    of_site = np.zeros(rows, np.int64)
    sites = answered.unit == pieces.SITE
    of_site[answered.row[sites]] = answered.documents[sites]
    few = (answered.unit == 1) & (answered.documents < lines.share * of_site[answered.row])
    return answered.take(~sites & ~few)


def _of_all(of_firsts: Found, firsts: Numbers) -> Found:
    """Of copies of a document too, in order."""
    by_row = of_firsts.take(np.lexsort((of_firsts.end, of_firsts.start, of_firsts.row)))
    begins, ends = (np.searchsorted(by_row.row, firsts, side) for side in ("left", "right"))
    sizes = ends - begins
    rows = np.repeat(np.arange(len(firsts)), sizes)
    which = np.arange(len(rows)) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)
    return by_row.take(which)._replace(row=rows)


# --- signals --------------------------------------------------------------------------------------


def measured(root: Path, settings: Across, part: int, num: int) -> dict[str, Any]:
    """Write signals/across/part, in the row groups of its documents."""
    documents = pq.ParquetFile(root / "documents" / part_name(part))
    num_bytes = documents.read(["num_bytes"]).column(0).combine_chunks()
    table = schema_of(settings)
    values = _values(found(root, settings, part, num), np.asarray(num_bytes.fill_null(0)), settings)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(values[field.name], field.type) for field in table], schema=table
    )
    batch = without(batch, np.asarray(num_bytes.is_null()))
    first = 0
    with (
        replacing(measure.outputs(root, NAME, part)[0]) as temporary,
        pq.ParquetWriter(temporary, table, compression="zstd") as writer,
    ):
        for group in range(documents.num_row_groups):
            rows = documents.metadata.row_group(group).num_rows
            writer.write_batch(batch.slice(first, rows), max(1, rows))
            first += rows
    return {"documents": len(batch)}


def schema_of(settings: Across) -> pa.Schema:
    return pa.schema([(name, signal.type) for name, signal in columns(settings).items()])


def _values(
    pieces_found: Found, num_bytes: Numbers, settings: Across
) -> dict[str, npt.NDArray[Any]]:
    rows, sizes = len(num_bytes), np.maximum(num_bytes, 1)
    values: dict[str, npt.NDArray[Any]] = {}
    for unit in settings.units:
        mine = pieces_found.take(pieces_found.unit == pieces.UNITS.index(unit))
        values[f"num_{unit}"] = np.bincount(mine.row, minlength=rows)
        taken = np.bincount(mine.row, mine.end - mine.start, rows)
        values[f"{unit}_share"] = (taken / sizes).astype(np.float32)
    together = merged([_edits(pieces_found)])
    taken = np.bincount(together.rows, together.ends - together.starts, rows)
    values["repeated_share"] = (taken / sizes).astype(np.float32)
    most = np.zeros(rows, np.int64)
    np.maximum.at(most, pieces_found.row, pieces_found.documents)
    values["most_documents"] = np.minimum(most, 2**31 - 1)
    return values


# --- edits ----------------------------------------------------------------------------------------


def edited(root: Path, settings: Across, unit: str, part: int, num: int) -> dict[str, Any]:
    """Write edits/<unit>/part: all that was found but the copy that is kept."""
    pieces_found = found(root, settings, part, num)
    mine = (pieces_found.unit == pieces.UNITS.index(unit)) & ~pieces_found.kept
    documents = pq.ParquetFile(root / "documents" / part_name(part)).read(["id", "num_bytes"])
    num_bytes = np.asarray(documents["num_bytes"].combine_chunks().fill_null(0))
    edits = _edits(_with_blank_lines(pieces_found.take(mine), num_bytes))
    ids = documents["id"].combine_chunks()
    with (
        replacing(edit.outputs(root, unit, part)[0]) as temporary,
        pq.ParquetWriter(temporary, schema.EDITS, compression="zstd") as writer,
    ):
        if len(edits):
            writer.write_batch(edit.rows_of(ids, edits))
    return {"documents": len(ids), **edit.counted(edits)}


def _edits(pieces_found: Found) -> Edits:
    names = pa.array(KINDS, pa.string()).take(pa.array(pieces_found.unit))
    nothing = pa.array([""] * len(names), pa.string())
    return Edits(pieces_found.row, pieces_found.start, pieces_found.end, names, nothing)


def _with_blank_lines(gone: Found, num_bytes: Numbers) -> Found:
    """With the blank lines that would be left double, or at a border of the text.

    Of pieces that go one after another, blank lines apart, those between go too, and those behind
    the last where there are some before the first; at the end of the text those before the first.
    Where there are none on either side, those behind the first stay: they part what is left.
    """
    size = num_bytes[gone.row]
    reach = gone.end + gone.after
    goes_on = np.zeros(len(size) + 1, np.bool_)
    goes_on[1:-1] = (gone.row[1:] == gone.row[:-1]) & (reach[:-1] >= gone.start[1:])
    first, last = np.flatnonzero(~goes_on[:-1]), np.flatnonzero(~goes_on[1:])
    above = (gone.before[first] > 0) | (gone.start[first] == 0)
    below = (gone.after[last] > 0) | (gone.end[last] == size[last])

    start, end = gone.start.copy(), gone.end.copy()
    (inner,) = np.nonzero(goes_on[1:])
    run = np.cumsum(~goes_on[:-1]) - 1
    gaps: Numbers = np.cumsum(gone.after > 0)
    num_gap: Numbers = gaps[inner] - (gaps - (gone.after > 0))[first[run[inner]]]
    parts = ~(above | below)[run[inner]] & (num_gap == 1)
    inner = inner[~parts]
    end[inner] = start[inner + 1]
    both = above & below
    to_the_end = both & (reach[last] == size[last])
    end[last[both]] = reach[last[both]]
    start[first[to_the_end]] -= gone.before[first[to_the_end]]
    return gone._replace(start=start, end=end)
