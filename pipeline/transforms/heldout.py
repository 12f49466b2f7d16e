"""Held-out text: frozen sets chosen by content hash.

    nominate    a part: the contents that could be held out, with their text
    choose      all parts: the sets (those that stand already are never touched, see frozen.py)

What may not be trained on because of them: heldout_match.py.

The sets are the same however the documents are cut into parts, and copies of a text count once. Of
each language and source, a content is held out when its hash lies in the lowest `share` of the hash
range; where more than `max_documents` do, the lowest `max_documents` are. Where fewer than
`min_documents` do and there are at least ENOUGH x `min_documents` contents, the lowest
`min_documents` are. A part nominates its own lowest `max_documents` below that bound and its own
lowest ENOUGH x `min_documents`: the lowest of all parts are among these, and together they are as
many as that exactly when the contents of all parts are. Those above the bound and its own lowest
`min_documents` are only counted: they have no text.

With `translation_group` a document that is of a group goes by the hash of the group's name, not of
its content, so that parallel pages are held out together; a content that stands under several
hashes by the lowest of them, which parts can tell one by one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from pipeline import frozen, schema, translations
from pipeline.files import file_hash, part_name, read_sealed, replacing, write_sealed
from pipeline.tables import column, first_of_each, halves_of, rank_of, write_table
from pipeline.transforms import hreflang

if TYPE_CHECKING:
    from pipeline.heldout_settings import Heldout, TranslationGroup

SLICE_ROWS = 1_024  # of held-out texts, written together
ENOUGH = 20  # times min_documents: topping up holds out a twentieth of a small source at most
NOMINEES = pa.schema(
    [
        ("language", pa.string()),
        ("content_hash", schema.HASH),
        ("key", pa.uint64()),  # the first 64 bits of the hash that it is chosen by
        ("text", pa.string()),
    ]
)


# --- nominate -------------------------------------------------------------------------------------


def nominate_outputs(root: Path, part: int) -> list[Path]:
    return [root / "joins" / "nominees" / part_name(part)]


def nominate(
    root: Path,
    heldout: Heldout,
    languages: tuple[str, ...],
    part: int,
    group: TranslationGroup | None = None,
) -> dict[str, Any]:
    """Nominees of a part, by language, the hash that they are chosen by, and content hash.

    Args:
        languages: those of which sets are chosen.
        group: how parallel pages are told.
    """
    name = part_name(part)
    documents = pq.ParquetFile(root / "documents" / name)  # read_table takes 2 ms more a file
    contents = documents.read(["content_hash"]).column(0)
    signals = pq.ParquetFile(root / "signals" / "language" / name)
    language = signals.read(["lang"]).column(0)
    keys = halves_of(contents.combine_chunks())[:, 0].astype(np.uint64)  # Arrow has no big-endian
    if group is not None:
        if group.hreflang:
            names = hreflang.names(root, part, documents.read(["id"])["id"].combine_chunks())
        else:
            names = translations.names(root / "documents" / name, group)
        keys = _by_group(names, keys)
    ascending = np.argsort(keys, kind="stable")  # of one content the lowest counts
    first = pa.array(np.sort(ascending[first_of_each(contents.take(pa.array(ascending)))]))
    columns = {"language": language, "content_hash": contents, "key": pa.array(keys)}
    table = pa.table({**{n: c.take(first) for n, c in columns.items()}, "row": first})
    table = table.filter(pc.is_in(table["language"], pa.array(languages, pa.string())))
    rank = pa.array(rank_of(table["content_hash"].combine_chunks()))
    table = table.append_column("rank", rank)
    table = table.sort_by([(n, "ascending") for n in ("language", "key", "rank")])
    codes = np.asarray(table["language"].combine_chunks().dictionary_encode().indices)
    place = np.arange(len(codes)) - np.flatnonzero(np.diff(codes, prepend=-1))[codes]
    lowest = np.asarray(table["key"]) < np.uint64(bound(heldout.share))
    lowest &= place < heldout.max_documents
    least = heldout.min_documents if heldout.share > 0 else 0
    nominees = table.filter(pa.array(lowest | (place < ENOUGH * least)))
    with_text = table.filter(pa.array(lowest | (place < least)))
    rows = np.sort(np.asarray(with_text["row"]))
    at = pc.index_in(nominees["row"], pa.array(rows))  # null: without text
    texts = _texts(documents, rows).take(at)
    chosen_by = [nominees[n] for n in ("language", "content_hash", "key")]
    write_table(nominate_outputs(root, part)[0], NOMINEES, [*chosen_by, texts])
    return {"documents": len(contents), "contents": len(first), "nominees": len(nominees)}


def _by_group(names: pa.Array, contents: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Of each document the hash of the name of its group, or of its content where it is of none."""
    coded = names.dictionary_encode()
    hashes = [
        xxhash.xxh3_128_intdigest(name.encode()) >> 64 for name in coded.dictionary.to_pylist()
    ]
    of_group = np.array([*hashes, 0], np.uint64)[np.asarray(coded.indices.fill_null(len(hashes)))]
    return np.where(np.asarray(names.is_valid()), of_group, contents)


def _texts(documents: pq.ParquetFile, rows: npt.NDArray[np.int64]) -> pa.Array:
    """Texts of these rows, which ascend; each row group is read once, by itself."""
    found = [pa.array([], pa.string())]
    begin = 0
    for i in range(documents.num_row_groups):
        end = begin + documents.metadata.row_group(i).num_rows
        inside = rows[slice(*np.searchsorted(rows, [begin, end]))]
        if len(inside):
            found.append(column(documents, i, "text").take(pa.array(inside - begin)))
        begin = end
    return pa.concat_arrays(found)


def bound(share: float) -> int:
    """Contents whose first 64 bits lie below it are the lowest `share` of the hash range."""
    return int(share * 2**64)


# --- choose ---------------------------------------------------------------------------------------


def choose_outputs(root: Path) -> list[Path]:
    return list(frozen.paths(root))


def choose(
    root: Path, heldout: Heldout, kept: pa.Table, given: pa.Table, sources: dict[int, str]
) -> dict[str, Any]:
    """Write heldout.json and its documents: the sets that stand, those kept and given, new ones.

    In memory are the texts of all sets but the new ones, of these one set at a time, and 32 bytes
    a nominee.

    Args:
        kept, given: sets of other corpora, and the user's own text: schema.HELDOUT.
        sources: source of each part.

    Raises:
        ConfigError: a set that stands is not what the settings ask for: see frozen.py.
    """
    rows = frozen.join(frozen.standing(root), kept, "`heldout.keep`")
    rows = frozen.join(rows, given, "`heldout.independent`")
    recorded = frozen.recorded(root)
    have = set(rows["set"].unique().to_pylist())
    own = {(*entry["languages"], entry["source"]) for entry in frozen.chosen(recorded).values()}
    new = _new_sets(root, heldout, sources, have, own)
    chosen_with = {key: getattr(heldout, key) for key in frozen.CHOSEN_WITH}
    record_path, documents_path = choose_outputs(root)
    sets: dict[str, dict[str, Any]] = {}
    with (
        replacing(documents_path) as temporary,
        pq.ParquetWriter(temporary, schema.HELDOUT, compression="zstd") as writer,
    ):
        for name in sorted({*have, *new}):
            if name in new:
                sets[name] = _write(writer, _rows_of(root, name, *new[name])) | chosen_with
            else:
                sets[name] = _write(writer, rows.filter(pc.equal(rows["set"], name)))
    # What heldout.json told of a set before stays as it was.
    known, now = read_sealed(record_path) or {}, file_hash(documents_path)
    same = {"matched": known["matched"]} if "matched" in known and known["hash"] == now else {}
    write_sealed(record_path, {"hash": now, **same, "sets": sets | recorded})
    return {"sets": len(sets), "documents": sum(entry["documents"] for entry in sets.values())}


def _write(writer: pq.ParquetWriter, rows: pa.Table) -> dict[str, Any]:
    """Write a set by content, each once; returns what heldout.json tells of it."""
    rows = rows.combine_chunks()  # else each `take` would
    order = np.unique(rank_of(rows["content_hash"].combine_chunks()), return_index=True)[1]
    for begin in range(0, len(order), SLICE_ROWS):
        writer.write_table(rows.take(pa.array(order[begin : begin + SLICE_ROWS])))
    return {
        "languages": sorted(rows["language"].unique().to_pylist()),
        "source": rows["source"][order[0]].as_py(),
        "documents": len(order),
        "bytes": pc.sum(pc.binary_length(rows["text"].take(pa.array(order))), min_count=0).as_py(),
    }


# A nominee: what it is chosen by; its content, as two numbers; where it stands, its part and row of
# `nominees`.
NOMINEE = np.dtype(
    [("key", "<u8"), ("upper", "<u8"), ("lower", "<u8"), ("part", "<u4"), ("row", "<u4")]
)
Nominated = npt.NDArray[Any]  # of NOMINEE
MERGE_ROWS = 1 << 20  # nominees of a set that wait until they are merged, 32 bytes each


def _nominated(
    root: Path, heldout: Heldout, sources: dict[int, str]
) -> dict[tuple[str, str], Nominated]:
    """Of each language and source the contents that may be chosen: see `_lowest`."""
    found: dict[tuple[str, str], Nominated] = {}
    waiting: dict[tuple[str, str], list[Nominated]] = {}

    def merge(key: tuple[str, str]) -> None:
        before = found.get(key, np.empty(0, NOMINEE))
        found[key] = _lowest(np.concatenate([before, *waiting.pop(key)]), heldout)

    for part, source in sources.items():
        file = pq.ParquetFile(nominate_outputs(root, part)[0])
        table = file.read(["language", "content_hash", "key"])
        nominated = np.empty(len(table), NOMINEE)
        halves = halves_of(table["content_hash"].combine_chunks())
        nominated["upper"], nominated["lower"] = halves.T
        nominated["key"] = table["key"]
        nominated["part"], nominated["row"] = part, np.arange(len(table))
        for language in table["language"].unique().to_pylist():
            key = language, source
            mine = nominated[np.asarray(pc.equal(table["language"], language))]
            waiting.setdefault(key, []).append(mine)
            # As many as were merged before: so each is merged again a few times at most.
            if sum(map(len, waiting[key])) > max(MERGE_ROWS, len(found.get(key, ()))):
                merge(key)
    for key in list(waiting):
        merge(key)
    return found


def _lowest(nominated: Nominated, heldout: Heldout) -> Nominated:
    """The contents below the bound, and so many of the lowest as tell whether there are enough;
    ascending, each once, by its lowest key."""
    nominated = nominated[np.lexsort([nominated[n] for n in ("key", "lower", "upper")])]
    upper, lower = nominated["upper"], nominated["lower"]
    is_new = np.ones(len(nominated), np.bool_)
    is_new[1:] = (upper[1:] != upper[:-1]) | (lower[1:] != lower[:-1])
    nominated = nominated[is_new]
    nominated = nominated[np.argsort(nominated["key"], kind="stable")]
    return nominated[: max(_below(nominated, heldout), ENOUGH * heldout.min_documents)].copy()


def _below(contents: Nominated, heldout: Heldout) -> int:
    """How many of the lowest `share` of the hash range are held out."""
    return min(int((contents["key"] < bound(heldout.share)).sum()), heldout.max_documents)


def _new_sets(
    root: Path,
    heldout: Heldout,
    sources: dict[int, str],
    have: set[str],
    own: set[tuple[str, ...]],
) -> dict[str, tuple[str, str, Nominated]]:
    """Language, source and contents of each set to be, by name.

    Args:
        have: names that are taken.
        own: languages and sources that have their set, though its name may be of a folder from
            which the corpus was moved.
    """
    found = {}
    for (language, source), contents in _nominated(root, heldout, sources).items():
        wanted = _below(contents, heldout)
        if len(contents) >= ENOUGH * heldout.min_documents:
            wanted = max(wanted, heldout.min_documents)
        name = f"{root.name}/{language}/{source}"
        if wanted and name not in have and (language, source) not in own:
            found[name] = language, source, contents[:wanted]
    return found


def _rows_of(root: Path, name: str, language: str, source: str, contents: Nominated) -> pa.Table:
    """The rows of a new set, from the nominees of one part after another."""
    tables = []
    for part in np.unique(contents["part"]).tolist():
        nominees = pq.ParquetFile(nominate_outputs(root, part)[0]).read(["content_hash", "text"])
        tables.append(nominees.take(pa.array(contents["row"][contents["part"] == part])))
    found = pa.concat_tables(tables)
    same = [pa.repeat(value, len(found)) for value in (name, language, source)]
    hashes, texts = found.columns
    return pa.table([same[0], hashes, *same[1:], texts], schema=schema.HELDOUT)
