"""Held-out text: frozen sets chosen by content hash, and what may not be trained on because of it.

    nominate    a part: the documents that could be held out, and how many there are
    choose      all parts: the sets (those that stand in heldout.json already are never touched)
    match       a part: contents equal to, or containing, or contained in, a held-out document

A document is nominated when its hash lies in the lowest NOMINATED x share of the hash range, or
among the lowest `min_documents` of its part; the lowest ones of all parts are then chosen. Both
sets are the same however the documents are cut into parts.
"""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from dedup import contamination
from dedup.shingles import shingles
from filters import normalize
from filters.signals import GROUPS
from pipeline import schema
from pipeline.corpus import part_name
from pipeline.files import file_hash, read_json, replacing, write_json
from pipeline.readers import Piece, Record
from pipeline.readers.files import list_files
from pipeline.readers.formats import read
from pipeline.tables import column

if TYPE_CHECKING:
    from pipeline.settings import Heldout, Input

NOMINATED = 3  # times the share: the chance that a set of 10 falls short is below 1e-4
NOMINEES = pa.schema(
    [
        ("language", pa.string()),
        ("source", pa.string()),
        ("content_hash", schema.HASH),
        ("row", pa.int64()),
    ]
)


# --- nominate -------------------------------------------------------------------------------------


def nominate_outputs(root: Path, part: int) -> list[Path]:
    return [root / "joins" / "nominees" / part_name(part)]


def nominate(root: Path, heldout: Heldout, part: int) -> dict[str, Any]:
    """Nominees of a part, by language; the counters hold the documents per language."""
    name = part_name(part)
    documents = pq.read_table(root / "documents" / name, columns=["content_hash", "source"])
    languages = pq.read_table(root / "signals" / "language" / name, columns=["lang"])
    lang: list[str] = languages["lang"].to_pylist()
    contents: list[bytes] = documents["content_hash"].to_pylist()
    sources: list[str] = documents["source"].to_pylist()
    bound = int(min(1.0, NOMINATED * heldout.share) * 2**64)
    rows = sorted(range(len(lang)), key=lambda i: (lang[i], contents[i]))
    taken: Counter[str] = Counter()
    chosen = []
    for i in rows:
        if position(contents[i]) < bound or taken[lang[i]] < heldout.min_documents:
            taken[lang[i]] += 1
            chosen.append(i)
    table = pa.table(
        {
            "language": [lang[i] for i in chosen],
            "source": [sources[i] for i in chosen],
            "content_hash": [contents[i] for i in chosen],
            "row": chosen,
        },
        schema=NOMINEES,
    )
    with replacing(nominate_outputs(root, part)[0]) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return {"languages": dict(sorted(Counter(lang).items())), "nominees": len(chosen)}


def position(content_hash: bytes) -> int:
    """Where a content stands in the hash range 0 .. 2^64."""
    return int.from_bytes(content_hash[:8], "big")


# --- choose ---------------------------------------------------------------------------------------


def choose_outputs(root: Path) -> list[Path]:
    return [root / "heldout.json", root / "heldout" / "documents.parquet"]


def choose(
    root: Path,
    heldout: Heldout,
    independent: Input,
    parts: dict[int, dict[str, int]],
    sources: dict[int, str],
) -> dict[str, Any]:
    """Write heldout.json and its documents: the sets that stand, those kept, new ones.

    Args:
        independent: how to read `heldout.independent` files.
        parts: documents per language of each part (the counters of `nominate`).
        sources: source of each part.
    """
    json_path, documents_path = choose_outputs(root)
    rows = _standing(documents_path)
    for path in heldout.keep:
        rows += _standing(Path(path).parent / "heldout" / "documents.parquet")
    have = {row["set"] for row in rows}
    rows += [r for r in _independent(heldout, independent) if r["set"] not in have]
    rows += _new_sets(root, heldout, parts, sources, have)
    unique = {(row["set"], row["content_hash"]): row for row in rows}
    ordered = [unique[key] for key in sorted(unique)]
    with replacing(documents_path) as temporary:
        pq.write_table(pa.Table.from_pylist(ordered, schema.HELDOUT), temporary, compression="zstd")
    sets: dict[str, dict[str, Any]] = {}
    for row in ordered:
        entry = sets.setdefault(
            row["set"],
            {"language": row["language"], "source": row["source"], "documents": 0, "bytes": 0},
        )
        entry["documents"] += 1
        entry["bytes"] += len(row["text"].encode())
    write_json(json_path, {"hash": file_hash(documents_path), "sets": sets})
    return {"sets": len(sets), "documents": len(ordered)}


def _standing(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist() if path.exists() else []
    return rows


def _new_sets(
    root: Path,
    heldout: Heldout,
    parts: dict[int, dict[str, int]],
    sources: dict[int, str],
    have: set[str],
) -> list[dict[str, Any]]:
    """Sets of the languages and sources that have none yet."""
    totals: Counter[tuple[str, str]] = Counter()
    for part, languages in parts.items():
        for language, count in languages.items():
            totals[language, sources[part]] += count
    nominees: dict[tuple[str, str], list[tuple[bytes, int, int]]] = {}
    for part in sorted(parts):
        for row in pq.read_table(nominate_outputs(root, part)[0]).to_pylist():
            key = (row["language"], row["source"])
            nominees.setdefault(key, []).append((row["content_hash"], part, row["row"]))
    rows: list[dict[str, Any]] = []
    places: list[tuple[int, int]] = []
    for (language, source), count in sorted(totals.items()):
        name = f"{root.name}/{language}/{source}"
        if name in have:
            continue
        wanted = round(heldout.share * count)
        if count >= 20 * heldout.min_documents:
            wanted = max(wanted, heldout.min_documents)
        distinct = {content: (part, row) for content, part, row in nominees[language, source][::-1]}
        for content in sorted(distinct)[:wanted]:
            new = {"set": name, "content_hash": content, "language": language, "source": source}
            rows.append(new)
            places.append(distinct[content])
    texts = _texts(root, places)
    return [{**row, "text": texts[place]} for row, place in zip(rows, places, strict=True)]


def _texts(root: Path, places: list[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Texts of documents by (part, row); each row group is read once."""
    wanted: dict[int, list[int]] = {}
    for part, row in sorted(places):
        wanted.setdefault(part, []).append(row)
    found: dict[tuple[int, int], str] = {}
    for part, rows in wanted.items():
        documents = pq.ParquetFile(root / "documents" / part_name(part))
        begin = 0
        for i in range(documents.num_row_groups):
            end = begin + documents.metadata.row_group(i).num_rows
            inside = [row for row in rows if begin <= row < end]
            if inside:
                texts = column(documents, i, "text")
                found |= {(part, row): texts[row - begin].as_py() for row in inside}
            begin = end
    return found


def _independent(heldout: Heldout, source: Input) -> list[dict[str, Any]]:
    """Evaluation text given by the user: one set a file, named by its stem."""
    rows = []
    for pattern in heldout.independent:
        for path, file in list_files(pattern):
            records = [r for r in read(Piece(path, file), source, "") if isinstance(r, Record)]
            texts = [normalize.normalize(record.text)[0] for record in records]
            texts = [text for text in texts if text.strip()]
            measured = GROUPS["language"].measure(pa.array(texts, pa.string()), pa.nulls(0))
            stem = Path(file).name.split(".")[0]
            for text, language in zip(texts, pa.array(measured["lang"]).to_pylist(), strict=True):
                rows.append(
                    {
                        "set": f"independent/{stem}",
                        "content_hash": schema.text_hash(text.encode()),
                        "language": language,
                        "source": stem,
                        "text": text,
                    }
                )
    return rows


# --- match ----------------------------------------------------------------------------------------


def match_outputs(root: Path, part: int) -> list[Path]:
    return [root / "heldout" / "matches" / part_name(part)]


def match(root: Path, containment: float, ngram: int, part: int) -> dict[str, Any]:
    """Contents of a part that repeat a held-out document, itself included."""
    path = choose_outputs(root)[1]
    index, contents = _index(str(path), read_json(choose_outputs(root)[0])["hash"], ngram)
    held = set(contents)
    documents = pq.ParquetFile(root / "documents" / part_name(part))
    rows = []
    for i in range(documents.num_row_groups):
        mine: list[bytes] = column(documents, i, "content_hash").to_pylist()
        hashes, offsets = shingles(column(documents, i, "text"), ngram)
        found = contamination.matches(index, hashes, offsets, containment)
        for doc, other, jaccard, contained in zip(*(f.tolist() for f in found), strict=True):
            rows.append((mine[doc], contents[other], jaccard, contained))
        rows += [(content, content, 1.0, 1.0) for content in mine if content in held]
    unique = {(row[0], row[1]): row for row in rows}
    table = pa.Table.from_pylist(
        [
            dict(zip(schema.HELDOUT_MATCHES.names, unique[key], strict=True))
            for key in sorted(unique)
        ],
        schema.HELDOUT_MATCHES,
    )
    with replacing(match_outputs(root, part)[0]) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return {"matches": len(table), "documents": len({key[0] for key in unique})}


@functools.lru_cache(maxsize=1)
def _index(path: str, version: str, ngram: int) -> tuple[Any, list[bytes]]:
    """Shingle index of all held-out documents; one a process, `version` keys the cache."""
    table = pq.read_table(path, columns=["content_hash", "text"])
    contents: list[bytes] = table["content_hash"].to_pylist()
    hashes, offsets = shingles(table["text"].combine_chunks(), ngram)
    return contamination.build_index(hashes, offsets), contents
