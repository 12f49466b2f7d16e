"""Held-out text: frozen sets chosen by content hash, and what may not be trained on because of it.

    nominate    a part: the contents that could be held out
    choose      all parts: the sets (those that stand already are never touched, see frozen.py)
    match       a part: contents equal to, or near to, or containing, or contained in held-out text

The sets are the same however the documents are cut into parts, and copies of a text count once. Of
each language and source, a content is held out when its hash lies in the lowest `share` of the hash
range. Where fewer than `min_documents` do and there are at least ENOUGH x `min_documents` contents,
the lowest `min_documents` are. A part nominates what lies below that bound and its own lowest
ENOUGH x `min_documents`: the lowest of all parts are among these, and together they are as many as
that exactly when the contents of all parts are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dedup import contamination
from pipeline import corpus, frozen, schema
from pipeline.files import file_hash, part_name, write_sealed
from pipeline.ranges import open_file
from pipeline.tables import column, first_of_each, halves_of, rank_of, write_rows, write_table
from pipeline.transforms import heldout_index

if TYPE_CHECKING:
    from pipeline.settings import Heldout, Input, Near
    from pipeline.transforms.sweep import Stage

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
    lowest = halves_of(table["content_hash"].combine_chunks())[:, 0] < int(heldout.share * 2**64)
    nominated = (lowest | (place < ENOUGH * heldout.min_documents)) & (heldout.share > 0)
    nominees = table.select(NOMINEES.names).filter(pa.array(nominated))
    write_table(nominate_outputs(root, part)[0], NOMINEES, nominees.columns)
    return {"documents": len(contents), "contents": len(table), "nominees": len(nominees)}


def below(share: float, content_hash: bytes) -> bool:
    """Whether a content lies in the lowest `share` of the hash range 0 .. 2^64."""
    return int.from_bytes(content_hash[:8], "big") < int(share * 2**64)


# --- choose ---------------------------------------------------------------------------------------


def choose_outputs(root: Path) -> list[Path]:
    return list(frozen.paths(root))


def choose(
    root: Path,
    heldout: Heldout,
    independent: Input,
    sources: dict[int, str],
    languages: tuple[str, ...],
) -> dict[str, Any]:
    """Write heldout.json and its documents: the sets that stand, those kept and given, new ones.

    Args:
        independent: how to read `heldout.independent` files.
        sources: source of each part.
        languages: those of which new sets are chosen.

    Raises:
        ConfigError: a set that stands is not what the settings ask for: see frozen.py.
    """
    frozen.check(root, heldout)
    given, rejected = frozen.independent(heldout, independent)
    rows = frozen.join(frozen.standing(root), frozen.kept(heldout), "`heldout.keep`")
    rows = frozen.join(rows, given, "`heldout.independent`")
    nominees = _nominees(root, sources, languages)
    new = _new_sets(root, heldout, nominees, {row["set"] for row in rows})
    unique = {(row["set"], row["content_hash"]): row for row in rows + new}
    ordered = [unique[key] for key in sorted(unique)]
    record_path, documents_path = choose_outputs(root)
    recorded = frozen.recorded(root)
    write_rows(documents_path, schema.HELDOUT, ordered)
    write_sealed(
        record_path,
        {"hash": file_hash(documents_path), "sets": _record(heldout, recorded, new, ordered)},
    )
    return {
        "sets": len({row["set"] for row in ordered}),
        "documents": len(ordered),
        "independent_records": len(given) + len(rejected),
        "independent_rejected": len(rejected),
        "rejected": rejected,
    }


def _record(
    heldout: Heldout,
    recorded: dict[str, dict[str, Any]],
    new: frozen.Rows,
    ordered: frozen.Rows,
) -> dict[str, dict[str, Any]]:
    """What heldout.json tells of each set; what it told before stays as it was."""
    chosen = {row["set"] for row in new}
    sets: dict[str, dict[str, Any]] = {}
    for row in ordered:
        entry = sets.setdefault(
            row["set"], {"languages": [], "source": row["source"], "documents": 0, "bytes": 0}
        )
        if row["language"] not in entry["languages"]:
            entry["languages"] = sorted([*entry["languages"], row["language"]])
        entry["documents"] += 1
        entry["bytes"] += len(row["text"].encode())
    for name in chosen:
        sets[name] |= {key: getattr(heldout, key) for key in frozen.CHOSEN_WITH}
    return sets | recorded


Nominees = dict[tuple[str, str], dict[bytes, tuple[int, int]]]  # content -> part, row


def _nominees(root: Path, sources: dict[int, str], languages: tuple[str, ...]) -> Nominees:
    """What the parts nominate, by language and source."""
    found: Nominees = {}
    for part, source in sources.items():
        for row in pq.read_table(nominate_outputs(root, part)[0]).to_pylist():
            if row["language"] in languages:
                of_set = found.setdefault((row["language"], source), {})
                of_set[row["content_hash"]] = (part, row["row"])
    return found


def _new_sets(root: Path, heldout: Heldout, nominees: Nominees, have: set[str]) -> frozen.Rows:
    """Sets of the languages and sources that have none yet."""
    rows: frozen.Rows = []
    places: list[tuple[int, int]] = []
    for (language, source), contents in sorted(nominees.items()):
        name = f"{root.name}/{language}/{source}"
        if name in have:
            continue
        wanted = sum(below(heldout.share, content) for content in contents)
        if len(contents) >= ENOUGH * heldout.min_documents:
            wanted = max(wanted, heldout.min_documents)
        for content in sorted(contents)[:wanted]:
            new = {"set": name, "content_hash": content, "language": language, "source": source}
            rows.append(new)
            places.append(contents[content])
    texts = _texts(root, places)
    return [{**row, "text": texts[place]} for row, place in zip(rows, places, strict=True)]


def _texts(root: Path, places: list[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Texts of documents by (part, row); each row group is read once."""
    wanted: dict[int, list[int]] = {}
    for part, row in sorted(places):
        wanted.setdefault(part, []).append(row)
    found: dict[tuple[int, int], str] = {}
    for part, rows in wanted.items():
        name = f"documents/{part_name(part)}"
        with open_file(corpus.location(root, "ingest", part, name)) as file:
            documents = pq.ParquetFile(file)
            begin = 0
            for i in range(documents.num_row_groups):
                end = begin + documents.metadata.row_group(i).num_rows
                inside = [row for row in rows if begin <= row < end]
                if inside:
                    texts = column(documents, i, "text")
                    found |= {(part, row): texts[row - begin].as_py() for row in inside}
                begin = end
    return found


# --- match ----------------------------------------------------------------------------------------


def match_outputs(root: Path, part: int) -> list[Path]:
    return [root / "heldout" / "matches" / part_name(part)]


def match(root: Path, heldout: Heldout, near: Near, part: int) -> Stage:
    """Contents of a part that repeat a held-out document, itself included.

    A copy is near by `near.threshold`, as everywhere, or contained by `heldout.containment`.
    """
    index = heldout_index.read(root)
    names = pq.read_table(choose_outputs(root)[1], columns=["content_hash"])
    contents: list[bytes] = names["content_hash"].to_pylist()
    held = set(contents)
    rows: dict[tuple[bytes, bytes], tuple[bytes, bytes, float, float]] = {}
    mine: list[bytes] = []
    while (batch := (yield)) is not None:
        group: list[bytes] = batch.contents.to_pylist()
        found = contamination.matches(index, *batch.shingles, heldout.containment, near.threshold)
        for doc, other, jaccard, contained in zip(*(f.tolist() for f in found), strict=True):
            key = group[doc], contents[other]
            rows[key] = (*key, jaccard, contained)
        rows |= {(h, h): (h, h, 1.0, 1.0) for h in held.intersection(group)}
        mine += group
    columns = schema.HELDOUT_MATCHES.names
    table = [dict(zip(columns, rows[key], strict=True)) for key in sorted(rows)]
    write_rows(match_outputs(root, part)[0], schema.HELDOUT_MATCHES, table)
    out = {content for content, _ in rows}
    return {
        "documents": len(mine),
        "excluded": sum(content in out for content in mine),
        "matches": len(table),
    }
