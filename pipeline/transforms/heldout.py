"""Held-out text: frozen sets chosen by content hash.

    nominate    a part: the contents that could be held out
    choose      all parts: the sets (those that stand already are never touched, see frozen.py)

What may not be trained on because of them: heldout_match.py.

The sets are the same however the documents are cut into parts, and copies of a text count once. Of
each language and source, a content is held out when its hash lies in the lowest `share` of the hash
range; where more than `max_documents` do, the lowest `max_documents` are. Where fewer than
`min_documents` do and there are at least ENOUGH x `min_documents` contents, the lowest
`min_documents` are. A part nominates its own lowest `max_documents` below that bound and its own
lowest ENOUGH x `min_documents`: the lowest of all parts are among these, and together they are as
many as that exactly when the contents of all parts are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import frozen, schema
from pipeline.files import file_hash, part_name, replacing, write_sealed
from pipeline.ranges import open_file
from pipeline.tables import column, first_of_each, halves_of, rank_of, write_table

if TYPE_CHECKING:
    from pipeline.settings import Heldout

SLICE_ROWS = 1_024  # of held-out texts, written together
ENOUGH = 20  # times min_documents: topping up holds out a twentieth of a small source at most
NOMINEES = pa.schema(
    [("language", pa.string()), ("content_hash", schema.HASH), ("row", pa.int64())]
)


# --- nominate -------------------------------------------------------------------------------------


def nominate_outputs(root: Path, part: int) -> list[Path]:
    return [root / "joins" / "nominees" / part_name(part)]


def nominate(root: Path, heldout: Heldout, part: int) -> dict[str, Any]:
    """Nominees of a part, by language and content hash."""
    name = part_name(part)
    documents = pq.ParquetFile(root / "documents" / name)  # read_table takes 2 ms more a file
    contents = documents.read(["content_hash"]).column(0)
    signals = pq.ParquetFile(root / "signals" / "language" / name)
    languages = signals.read(["lang"]).column(0)
    first = first_of_each(contents)
    hashes = contents.take(first).combine_chunks()
    table = pa.table(
        [languages.take(first), hashes, pa.array(first), pa.array(rank_of(hashes))],
        [*NOMINEES.names, "rank"],
    ).sort_by([("language", "ascending"), ("rank", "ascending")])
    codes = np.asarray(table["language"].combine_chunks().dictionary_encode().indices)
    place = np.arange(len(codes)) - np.flatnonzero(np.diff(codes, prepend=-1))[codes]
    lowest = halves_of(table["content_hash"].combine_chunks())[:, 0] < bound(heldout.share)
    lowest &= place < heldout.max_documents
    nominated = (lowest | (place < ENOUGH * heldout.min_documents)) & (heldout.share > 0)
    nominees = table.select(NOMINEES.names).filter(pa.array(nominated))
    write_table(nominate_outputs(root, part)[0], NOMINEES, nominees.columns)
    return {"documents": len(contents), "contents": len(table), "nominees": len(nominees)}


def bound(share: float) -> int:
    """Contents whose first 64 bits lie below it are the lowest `share` of the hash range."""
    return int(share * 2**64)


# --- choose ---------------------------------------------------------------------------------------


def choose_outputs(root: Path) -> list[Path]:
    return list(frozen.paths(root))


def choose(
    root: Path,
    heldout: Heldout,
    kept: pa.Table,
    given: pa.Table,
    sources: dict[int, str],
    languages: tuple[str, ...],
    documents: Callable[[int], str],
) -> dict[str, Any]:
    """Write heldout.json and its documents: the sets that stand, those kept and given, new ones.

    In memory are the held-out texts, twice while they are put together, and 24 bytes a nominee.

    Args:
        kept, given: sets of other corpora, and the user's own text: schema.HELDOUT.
        sources: source of each part.
        languages: those of which new sets are chosen.
        documents: where the documents of a part can be opened.

    Raises:
        ConfigError: a set that stands is not what the settings ask for: see frozen.py.
    """
    rows = frozen.join(frozen.standing(root), kept, "`heldout.keep`")
    rows = frozen.join(rows, given, "`heldout.independent`")
    have = set(rows["set"].unique().to_pylist())
    new = _new_sets(root, heldout, sources, languages, have, documents)
    chosen = set(new["set"].unique().to_pylist())
    rows = pa.concat_tables([rows, new]).combine_chunks()  # else each `take` would
    del new
    recorded = frozen.recorded(root)
    record_path, documents_path = choose_outputs(root)
    sets = _write_documents(documents_path, rows)
    for name in chosen:
        sets[name] |= {key: getattr(heldout, key) for key in frozen.CHOSEN_WITH}
    # What heldout.json told of a set before stays as it was.
    write_sealed(record_path, {"hash": file_hash(documents_path), "sets": sets | recorded})
    return {"sets": len(sets), "documents": sum(entry["documents"] for entry in sets.values())}


def _write_documents(path: Path, rows: pa.Table) -> dict[str, dict[str, Any]]:
    """The rows sorted by set and content, each once; returns what heldout.json tells of each set.

    Slice by slice: else the texts would be in memory once more, and as Python's strings.
    """
    order = np.asarray(
        pa.table({"set": rows["set"], "rank": rank_of(rows["content_hash"].combine_chunks())})
        .append_column("row", pa.array(np.arange(len(rows))))
        .sort_by([("set", "ascending"), ("rank", "ascending"), ("row", "ascending")])["row"]
    )
    sets: dict[str, dict[str, Any]] = {}
    last = None
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, schema.HELDOUT, compression="zstd") as writer,
    ):
        for begin in range(0, len(order), SLICE_ROWS):
            inside = []
            some = rows.take(pa.array(order[begin : begin + SLICE_ROWS]))
            for at, row in enumerate(some.to_pylist()):
                if (row["set"], row["content_hash"]) != last:
                    inside.append(at)
                    _count(sets, row)
                last = row["set"], row["content_hash"]
            writer.write_table(some.take(pa.array(inside, pa.int64())))
    return sets


def _count(sets: dict[str, dict[str, Any]], row: dict[str, Any]) -> None:
    entry = sets.setdefault(
        row["set"], {"languages": [], "source": row["source"], "documents": 0, "bytes": 0}
    )
    if row["language"] not in entry["languages"]:
        entry["languages"] = sorted([*entry["languages"], row["language"]])
    entry["documents"] += 1
    entry["bytes"] += len(row["text"].encode())


# A nominee: its content, as two numbers, and where a document with it stands.
NOMINEE = np.dtype([("upper", "<u8"), ("lower", "<u8"), ("part", "<u4"), ("row", "<u4")])
Nominated = npt.NDArray[Any]  # of NOMINEE
MERGE_ROWS = 1 << 20  # nominees of a set that wait until they are merged, 24 bytes each


def _nominated(
    root: Path, heldout: Heldout, sources: dict[int, str], languages: tuple[str, ...]
) -> dict[tuple[str, str], Nominated]:
    """Of each language and source the contents that may be chosen: see `_lowest`."""
    found: dict[tuple[str, str], Nominated] = {}
    waiting: dict[tuple[str, str], list[Nominated]] = {}

    def merge(key: tuple[str, str]) -> None:
        before = found.get(key, np.empty(0, NOMINEE))
        found[key] = _lowest(np.concatenate([before, *waiting.pop(key)]), heldout)

    for part, source in sources.items():
        table = pq.ParquetFile(nominate_outputs(root, part)[0]).read()
        for language in set(languages).intersection(table["language"].unique().to_pylist()):
            mine = table.filter(pc.equal(table["language"], language))
            nominated = np.empty(len(mine), NOMINEE)
            halves = halves_of(mine["content_hash"].combine_chunks())
            nominated["upper"], nominated["lower"] = halves.T
            nominated["part"], nominated["row"] = part, np.asarray(mine["row"])
            key = language, source
            waiting.setdefault(key, []).append(nominated)
            # As many as were merged before: so each is merged again a few times at most.
            if sum(map(len, waiting[key])) > max(MERGE_ROWS, len(found.get(key, ()))):
                merge(key)
    for key in list(waiting):
        merge(key)
    return found


def _lowest(nominated: Nominated, heldout: Heldout) -> Nominated:
    """The contents below the bound, and so many of the lowest as tell whether there are enough;
    ascending, each once."""
    nominated = nominated[np.lexsort((nominated["lower"], nominated["upper"]))]
    upper, lower = nominated["upper"], nominated["lower"]
    is_new = np.ones(len(nominated), np.bool_)
    is_new[1:] = (upper[1:] != upper[:-1]) | (lower[1:] != lower[:-1])
    nominated = nominated[is_new]
    return nominated[: max(_below(nominated, heldout), ENOUGH * heldout.min_documents)].copy()


def _below(contents: Nominated, heldout: Heldout) -> int:
    """How many of the lowest `share` of the hash range are held out."""
    return min(int((contents["upper"] < bound(heldout.share)).sum()), heldout.max_documents)


def _new_sets(
    root: Path,
    heldout: Heldout,
    sources: dict[int, str],
    languages: tuple[str, ...],
    have: set[str],
    documents: Callable[[int], str],
) -> pa.Table:
    """Sets of the languages and sources that have none yet, in the order of the documents."""
    labels: list[tuple[str, str, str]] = []
    chosen = [np.empty(0, NOMINEE)]
    nominated = _nominated(root, heldout, sources, languages)
    for (language, source), contents in sorted(nominated.items()):
        name = f"{root.name}/{language}/{source}"
        if name not in have:
            wanted = _below(contents, heldout)
            if len(contents) >= ENOUGH * heldout.min_documents:
                wanted = max(wanted, heldout.min_documents)
            labels.append((name, language, source))
            chosen.append(contents[:wanted])
    sizes = np.array([len(one) for one in chosen[1:]], np.int64)
    label = pa.array(np.repeat(np.arange(len(labels)), sizes))
    places = np.concatenate(chosen)
    order = np.lexsort((places["row"], places["part"]))
    places, label = places[order], label.take(pa.array(order))
    halves = np.stack([places["upper"], places["lower"]], axis=1).astype(">u8")
    hashes = pa.FixedSizeBinaryArray.from_buffers(
        schema.HASH, len(places), [None, pa.py_buffer(halves.tobytes())]
    )
    sets, langs, origins = (
        pa.array([one[at] for one in labels], pa.string()).take(label) for at in range(3)
    )
    texts = _texts(places, documents)
    return pa.table([sets, hashes, langs, origins, texts], schema=schema.HELDOUT)


def _texts(places: Nominated, documents: Callable[[int], str]) -> pa.ChunkedArray:
    """Texts of documents, which are ordered by part and row; each row group is read once."""
    found = [pa.array([], pa.string())]
    for part in np.unique(places["part"]).tolist():
        rows = places["row"][slice(*np.searchsorted(places["part"], [part, part + 1]))]
        with open_file(documents(part)) as file:
            table = pq.ParquetFile(file)
            begin = 0
            for i in range(table.num_row_groups):
                end = begin + table.metadata.row_group(i).num_rows
                inside = rows[slice(*np.searchsorted(rows, [begin, end]))]
                if len(inside):
                    found.append(column(table, i, "text").take(pa.array(inside - begin)))
                begin = end
    return pa.chunked_array(found)
