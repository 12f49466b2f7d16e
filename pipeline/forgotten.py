"""What a corpus was told to forget: a list beside corpus.json that only grows.

    forgotten/00000001.parquet      schema.FORGOTTEN: ids, contents, shingles of what was named
    forgotten/00000001.json         why, when, how many, the hash of the file above; sealed; last
    forgotten/00000001.receipt.json their text is gone from the corpus, and who had seen it

From the moment the second file stands no reader sees these documents (pipeline/views.py), and no
run of `prepare` writes the text of one: whatever is ingested later is compared with the list, by
id, by content and, over the shingles, as near copies. Shingles are hashes, no text. What is listed
and has no receipt yet is `pending`: its text may still stand somewhere (pipeline/takeout.py).
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import finished, schema, store
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError
from pipeline.files import SUSPECTS, file_hash, hash_once, read_sealed, replacing, write_sealed

if TYPE_CHECKING:
    from dedup.postings import Index
    from pipeline.dedup_settings import Near

FOLDER = "forgotten"
LISTED = re.compile(r"\d{8}\.json")
Checker = Callable[[pa.RecordBatch], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Listed:
    """One call of `assay forget`."""

    number: int
    reason: str
    time: int  # seconds since 1970, UTC
    documents: dict[str, int]  # how many, by why: see schema.FORGOTTEN
    ngram: int  # of the shingles
    path: Path  # of what was named
    done: bool  # has a receipt


def listed(root: Path) -> list[Listed]:
    """All calls, the oldest first; of the corpus itself also where `root` is its finished state.

    Raises:
        CorpusError: a file of the list is damaged; names it and the remedy.
    """
    folder = finished.home(root) / FOLDER
    if not folder.exists():
        return []
    names = sorted(path for path in folder.iterdir() if LISTED.fullmatch(path.name))
    return [_read(path) for path in names]


def _read(path: Path) -> Listed:
    found, table = read_sealed(path, strict=True), path.with_suffix(".parquet")
    if found is None or not table.exists() or hash_once(table) != found["files"][table.name]:
        raise CorpusError(
            f"{path if found is None else table} is damaged {SUSPECTS}: what this corpus was told "
            "to forget is not known; put it back from a copy, or delete both files of this number "
            "and call `assay forget` again for these documents"
        )
    del found["files"]
    number = int(path.stem)
    done = receipt_path(path.parent, number).exists()
    return Listed(number=number, path=table, done=done, **found)


def told(root: Path, digits: str) -> str:
    """Why a document is not there, by the first digits of its id or content; "" if another way."""
    for call in listed(root):
        for row in documents([call]).select(["id", "content_hash"]).to_pylist():
            names = [name.hex() for name in row.values() if name is not None]
            if any(name.startswith(digits) for name in names):
                day = time.strftime("%Y-%m-%d", time.gmtime(call.time))
                return f"{names[0]} was forgotten on {day} (no. {call.number}): {call.reason}"
    return ""


def num_forgotten(root: Path, part: int) -> int:
    """Documents of a part that are forgotten, as its commit record says."""
    if not (root / FOLDER).exists():
        return 0
    record = read_sealed(root / store.record_name("ingest", part))
    files = record["counters"]["files"].values() if record else ()
    return sum(counted.get("forgotten", 0) for counted in files)


def receipt_path(folder: Path, number: int) -> Path:
    """Of a call, in the folder of the list; beside it stands the same as Markdown."""
    return folder / f"{number:08d}.receipt.json"


def documents(calls: Iterable[Listed]) -> pa.Table:
    """Rows of schema.FORGOTTEN of these calls."""
    tables = [pq.read_table(call.path, schema=schema.FORGOTTEN) for call in calls]
    return pa.concat_tables([schema.FORGOTTEN.empty_table(), *tables]).combine_chunks()


def contents(calls: Iterable[Listed]) -> pa.Array:
    """Content hashes of these calls, each once."""
    found = documents(calls)["content_hash"].combine_chunks()
    return found.drop_null().unique()


def add(root: Path, rows: pa.Table, reason: str, ngram: int) -> Listed:
    """List documents; call it while holding the corpus."""
    folder, known = root / FOLDER, listed(root)
    number = known[-1].number + 1 if known else 1
    path = folder / f"{number:08d}.parquet"
    with replacing(path) as temporary:
        pq.write_table(rows.cast(schema.FORGOTTEN), temporary, compression="zstd")
    counted = pc.value_counts(rows["why"]).to_pylist()
    call: dict[str, Any] = {
        "reason": reason,
        "time": round(time.time()),
        "documents": {row["values"]: row["counts"] for row in counted},
        "ngram": ngram,
    }
    write_sealed(path.with_suffix(".json"), {**call, "files": {path.name: file_hash(path)}})
    return _read(path.with_suffix(".json"))


# --- at ingest ------------------------------------------------------------------------------------


class Known(NamedTuple):
    """The whole list, ready to be compared with."""

    ids: pa.Array
    contents: pa.Array
    shingles: Index
    ngram: int
    threshold: float


def checker(root: Path, near: Near) -> Checker | None:
    """Of a row group of documents, which are forgotten: by id, by content, as a near copy of one
    that was named. None where the corpus was told to forget nothing.

    Raises:
        ConfigError: `near.ngram` is not what the shingles of the list were made with.
    """
    calls = tuple(listed(root))
    if not calls:
        return None
    for call in calls:
        if call.ngram != near.ngram:
            raise ConfigError(
                f"key `near.ngram`: {near.ngram}, but {call.path} holds shingles of {call.ngram} "
                "words, by which near copies of what is forgotten are known at ingest; put "
                f"{call.ngram} back"
            )
    return functools.partial(_forgotten, _known(calls, near.ngram, near.threshold))


@functools.lru_cache(maxsize=2)
def _known_of(paths: tuple[Path, ...], ngram: int, threshold: float) -> Known:
    tables = [pq.read_table(path, schema=schema.FORGOTTEN) for path in paths]
    rows = pa.concat_tables(tables).combine_chunks()
    sets = rows["shingles"].combine_chunks().drop_null()
    index = _index(sets, threshold)
    ids, found = (rows[name].combine_chunks().drop_null() for name in ("id", "content_hash"))
    return Known(ids.unique(), found.unique(), index, ngram, threshold)


def _known(calls: tuple[Listed, ...], ngram: int, threshold: float) -> Known:
    return _known_of(tuple(call.path for call in calls), ngram, threshold)


def _index(sets: pa.LargeListArray, threshold: float) -> Index:
    from dedup.postings import build_index  # loads numba: 0.5 s, where there is a list alone

    hashes, offsets = np.asarray(sets.flatten()), np.asarray(sets.offsets)
    return build_index(hashes, offsets - offsets[0], threshold)


def _forgotten(known: Known, group: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    from dedup.shingles import shingles

    by_id = np.asarray(pc.is_in(group["id"], value_set=known.ids))
    by_content = np.asarray(pc.is_in(group["content_hash"], value_set=known.contents))
    gone: npt.NDArray[np.bool_] = by_id | by_content
    (rest,) = np.nonzero(~gone)
    texts = group["text"].take(pa.array(rest)).fill_null("")
    near = near_copies(known.shingles, *shingles(texts, known.ngram), known.threshold)
    gone[rest[near]] = True
    return gone


def near_copies(
    index: Index,
    hashes: npt.NDArray[np.uint64],
    offsets: npt.NDArray[np.int64],
    threshold: float,
) -> npt.NDArray[np.int64]:
    """Which texts, by their shingles, have a true Jaccard of `threshold` with one of the index. Not
    what contains one: whoever forgets a cookie banner does not mean all pages that show it."""
    from dedup.contamination import matches

    texts, _, jaccard, _ = matches(index, hashes, offsets, 1.0, threshold)
    return np.unique(texts[jaccard >= np.float32(threshold)])
