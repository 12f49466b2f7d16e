"""What of a part stands in other documents too: signal group `across`, the edits of its units, and
all places of those units that keep a copy, so that a mixture can say which one stays.

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

from filters.blank_lines import with_blank_lines
from filters.columns import Signal
from filters.edits import Edits, merged
from pipeline import schema
from pipeline.dedup_settings import KEPT_ONCE
from pipeline.files import part_name
from pipeline.tables import read_columns, spread, without, write_aligned, write_table
from pipeline.transforms import across, edit, measure, pieces

if TYPE_CHECKING:
    from filters.segments import Texts
    from filters.signals import Columns
    from pipeline.dedup_settings import Across

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
    raise AssertionError("made from all parts: see pipeline/stage_tables/across.py, substrings.py")


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
    high: pieces.Column  # of its key: uint64
    low: pieces.Column

    def take(self, which: npt.NDArray[Any]) -> Found:
        return Found(*(column[which] for column in self))


def found(root: Path, settings: Across, part: int, num: int) -> Found:
    """From the `num` partitions; rows are those of all documents, copies too."""
    slices = [across.found_of(root, partition, part) for partition in range(num)]
    place, documents, kept = map(np.concatenate, zip(*slices, strict=True))
    pieces_path, documents_path = pieces.outputs(root, part)
    stored = pieces.Records(*read_columns(pieces_path, schema.PIECES))
    records = stored.take((place & np.uint64(0xFFFFFFFF)).astype(np.int64))
    whole = [records.row, pieces.unit_of(records.low), *records[3:], documents]
    answered = Found._make(
        [*(column.astype(np.int64) for column in whole), kept == 1, records.high, records.low]
    )
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
    rows, which = spread(by_row.row, firsts)
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
    write_aligned(measure.outputs(root, NAME, part)[0], documents, batch)
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


def outputs(root: Path, unit: str, part: int) -> list[Path]:
    places = [root / "places" / unit / part_name(part)] if unit in KEPT_ONCE else []
    return [*edit.outputs(root, unit, part), *places]


def edited(root: Path, settings: Across, unit: str, part: int, num: int) -> dict[str, Any]:
    """Write edits/<unit>/part: all that was found but the copy that is kept when the whole corpus
    is selected; and places/<unit>/part: all that was found."""
    pieces_found = found(root, settings, part, num)
    mine = pieces_found.take(pieces_found.unit == pieces.UNITS.index(unit))
    gone = mine.take(~mine.kept)
    documents = pq.ParquetFile(root / "documents" / part_name(part)).read(["id", "num_bytes"])
    num_bytes = np.asarray(documents["num_bytes"].combine_chunks().fill_null(0))
    start, end = with_blank_lines(gone.row, *gone[2:6], num_bytes[gone.row])
    edits = _edits(gone._replace(start=start, end=end))
    ids = documents["id"].combine_chunks()
    edits_path, *places_paths = outputs(root, unit, part)
    write_table(edits_path, schema.EDITS, edit.rows_of(ids, edits).columns)
    for path in places_paths:
        write_table(path, schema.PLACES, _places(ids, mine))
    return {"documents": len(ids), **edit.counted(edits)}


def _places(ids: pa.Array, mine: Found) -> list[pa.Array]:
    """Columns of schema.PLACES."""
    names = np.stack([mine.high, mine.low], axis=1).astype(">u8")
    keys = pa.Array.from_buffers(schema.HASH, len(names), [None, pa.py_buffer(names.tobytes())])
    copies = np.minimum(mine.documents, 2**31 - 1)
    others = (mine.start, mine.end, keys, copies, mine.kept, mine.before, mine.after)
    return [ids.take(pa.array(mine.row)), *map(pa.array, others)]


def _edits(pieces_found: Found) -> Edits:
    names = pa.array(KINDS, pa.string()).take(pa.array(pieces_found.unit))
    nothing = pa.array([""] * len(names), pa.string())
    return Edits(pieces_found.row, pieces_found.start, pieces_found.end, names, nothing)
