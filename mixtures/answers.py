"""Which places of repeated text went, kept beside the windows that were packed of it.

`rows_that_go` asks the selection which place of a text stays. When the document of that place is
forgotten the next place stays, so other documents are edited otherwise, and the plan of a run that
has begun would be another one. So the answer is kept with each packed selection, as
`going-<hash of its bytes>.arrow`. It holds on where what a mixture selects now is what was asked
about then, less what was forgotten since: windows masked in place are still those of this mixture.

A file holds schema.GOING, a batch for the edits of a name and a part of the corpus, only of
documents that have places. `places` is a sum over these: where a new join wrote other ones the
answer is not taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mixtures.packed import ANSWER
from mixtures.repeats import TABLES, Going
from pipeline import finished, schema
from pipeline.corpus import CorpusError, part_paths
from pipeline.files import file_hash, part_number, replacing
from pipeline.tables import halves_of, names_of

_OF_KEY, _OF_START = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)  # any odd ones


def keep(folder: Path, root: Path, kept: pa.RecordBatch, going: Mapping[str, Going]) -> None:
    """Write an answer into a packed folder.

    Args:
        kept: id and content_hash (bytes) of the documents of this corpus that the mixture keeps.
    """
    path = folder / "going.arrow"
    with (
        replacing(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, schema.GOING) as out,
    ):
        for asked in _asked(root, list(going), kept):
            lasts = np.append(asked.firsts, len(asked.rows)).astype(np.int32)
            goes = pa.array(going[asked.name][asked.part][asked.rows])
            lists = pa.ListArray.from_arrays(pa.array(lasts), goes)
            arrays = [*asked.documents.columns, lists]
            out.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema.GOING))
    path.replace(folder / f"{ANSWER}{file_hash(path)}.arrow")


def given(
    root: Path, names: Sequence[str], kept: pa.RecordBatch, forgotten: pa.Array
) -> dict[str, Going] | None:
    """The answer that was given when the mixture selected some of these forgotten contents too;
    None where there is none, or one was given without them.

    Args:
        names: of edits. kept: as above.

    Raises:
        CorpusError: a kept answer is damaged.
    """
    asked = list(_asked(root, names, kept))
    now = [each.documents for each in asked if len(each.documents)]
    paths = {p.name: p for p in (finished.home(root) / "packed").glob(f"[!.]*/{ANSWER}*.arrow")}
    found = None
    for _, path in sorted(paths.items()):
        before = _read(path)
        left = [_without(batch, forgotten) for batch in before]
        left = [batch for batch in left if len(batch)]
        if [batch.drop_columns("goes") for batch in left] == now:
            if sum(map(len, left)) == sum(map(len, before)):
                return None  # a selection without them
            found = found or left
    if found is None:
        return None
    goes = {(b["edits"][0].as_py(), b["part"][0].as_py()): b["goes"].flatten() for b in found}
    going: dict[str, dict[int, np.ndarray]] = {name: {} for name in names}
    for each in asked:
        going[each.name][each.part] = np.zeros(each.of, bool)
        if len(each.rows):
            going[each.name][each.part][each.rows] = goes[each.name, each.part]
    return dict(going)


def _without(batch: pa.RecordBatch, contents: pa.Array) -> pa.RecordBatch:
    return batch.filter(pc.invert(pc.is_in(batch["content_hash"], value_set=contents)))


def _read(path: Path) -> list[pa.RecordBatch]:
    if file_hash(path) != path.stem.removeprefix(ANSWER):
        raise CorpusError(
            f"{path} is not as it was written; delete it: what it says is asked anew, and a run "
            "that began before documents were forgotten may then be refused"
        )
    with pa.OSFile(str(path)) as source:
        reader = pa.ipc.open_file(source)
        return [reader.get_batch(number) for number in range(reader.num_record_batches)]


class Asked(NamedTuple):
    """Of one part of a table, what some documents have in it."""

    name: str
    part: int
    of: int  # rows of the table
    documents: pa.RecordBatch  # schema.GOING without what goes, by id
    rows: np.ndarray  # of the table, of one document after the other
    firsts: np.ndarray  # of these, one for each document


def _asked(root: Path, names: Sequence[str], kept: pa.RecordBatch) -> Iterator[Asked]:
    ids = names_of(kept["id"])
    order = np.argsort(ids)
    ids = ids[order]
    for name in sorted(names):
        for path in part_paths(root, TABLES[name].folder):
            part = part_number(path)
            table = pq.read_table(path, columns=["id", "start", "key"]).combine_chunks()
            stored = names_of(table["id"])
            places = np.minimum(np.searchsorted(ids, stored), max(0, len(ids) - 1))
            (rows,) = np.nonzero(ids[places] == stored) if len(ids) else (np.zeros(0, np.int64),)
            rows = rows[np.argsort(stored[rows], kind="stable")]
            mine = stored[rows]
            firsts = np.flatnonzero(np.append(True, mine[1:] != mine[:-1])[: len(mine)])
            halves = halves_of(table["key"].combine_chunks()).astype(np.uint64)[rows]
            starts = np.asarray(table["start"])[rows].astype(np.uint64)
            sums = (halves[:, 0] ^ starts * _OF_START) * _OF_KEY + halves[:, 1]
            if len(firsts):
                sums = np.add.reduceat(sums, firsts)
            at = pa.array(order[places[rows[firsts]]])
            columns = [
                pa.array([name] * len(firsts), pa.string()),
                pa.array(np.full(len(firsts), part, np.int32)),
                *(kept[column].take(at) for column in ("id", "content_hash")),
                pa.array(sums),
            ]
            documents = pa.RecordBatch.from_arrays(columns, names=schema.GOING.names[:-1])
            yield Asked(name, part, len(table), documents, rows, firsts)
