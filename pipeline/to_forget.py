"""Which documents are meant: those that are named, their exact copies, their verified near copies.

A text that stands three times is gone only when all three are. So with a document go all documents
of its content, and those that form a verified pair with it (Jaccard from `near.threshold` of the
corpus on, as stored in `pairs`; of large clusters compared here). Near copies of near copies stay.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from filters.addresses import domain_keys, split, without_www
from filters.canonical_urls import canonical
from pipeline import schema
from pipeline.corpus import CorpusError, manifest, part_paths
from pipeline.forgotten import documents, listed, near_copies
from pipeline.predicates import predicate
from pipeline.sql import connect
from pipeline.syntax import SqlError, names_in, tree_of

HEX = re.compile("[0-9a-f]{32}")
TEXTS_AT_ONCE = 1_024  # whose shingles are made together
# How documents are named -> the condition on `documents`, over the view "asked" of one column.
# Addresses are compared as they are, and by the hash of their canonical form.
CONDITIONS = {
    "ids": "id in (from asked) or content_hash in (from asked)",
    "urls": "url in (from asked) or canonical_url in (from asked) or url_hash in (from asked)",
    "domains": "domain in (from asked) or exists "
    "(select 1 from asked where ends_with(domain, '.' || asked.value))",
}


@dataclass(frozen=True)
class Meant:
    rows: pa.Table  # schema.FORGOTTEN, by id; without what was forgotten before
    shown: list[dict[str, Any]]  # the same for people: why, id, source, url, num_bytes
    unknown: list[str]  # values that no document or reject has
    before: int  # values that name what was forgotten before
    nulls: int  # documents for which the predicate is NULL: they stay


def meant(root: Path, how: str, values: Sequence[str], near_ngram: int, threshold: float) -> Meant:
    """What is meant by values: `how` is one of CONDITIONS, or `where` with one expression.

    Raises:
        CorpusError: a value cannot be what it is to be; names it and its place.
        SqlError: the predicate cannot be used.
    """
    nulls = 0
    if how == "where":
        condition, values = predicate(values[0]), ()
        _require_truth(root, condition)
        (row,) = _ask(root, f"select count(*) as n from documents where {condition} is null")
        nulls = row["n"]
    else:
        condition = CONDITIONS[how]
    if how == "urls" and not part_paths(root, "copies"):
        raise CorpusError(
            f"{root}: of an older version, which did not keep canonical addresses; call `assay "
            "prepare` for it again"
        )
    columns = "id, content_hash, source, url, canonical_url, url_hash, domain, num_bytes"
    columns = columns if how == "urls" else columns.replace("url_hash, ", "")
    asked = [*values, *map(_url_hash, values)] if how == "urls" else values
    named = _ask(root, f"select {columns} from documents where {condition}", asked)
    of_named = sorted({row["content_hash"] for row in named})
    same = "content_hash in (from asked)"
    copies = _ask(root, f"select {columns} from documents where {same}", of_named)
    shingles = _shingles(root, of_named, near_ngram)
    near = _near(root, of_named, shingles, threshold)
    others = _ask(root, f"select {columns} from documents where {same}", near)
    ids = {row["id"] for row in named}
    shown = [{"why": "named", **row} for row in named]
    shown += [{"why": "copy", **row} for row in copies if row["id"] not in ids]
    shown += [{"why": "near", **row} for row in others]
    if how == "ids":
        rejects = _ask(root, "select id, source from rejects where id in (from asked)", values)
        nothing = {"content_hash": None, "url": None, "num_bytes": 0}
        shown += [{"why": "reject", **row, **nothing} for row in rejects]
    known = documents(listed(root))
    gone = {h.hex() for name in ("id", "content_hash") for h in known[name].to_pylist() if h}
    if how == "ids":
        shown = [row for row in shown if row["why"] != "reject" or row["id"] not in gone]
    shown.sort(key=lambda row: str(row["id"]))
    names = _names(shown, how)
    unknown = [v for v in values if v not in names and (how != "urls" or _url_hash(v) not in names)]
    return Meant(
        rows=_rows(shown, shingles),
        shown=shown,
        unknown=[value for value in unknown if value not in gone],
        before=sum(value in gone for value in unknown),
        nulls=nulls,
    )


def read_values(path: Path, how: str) -> list[str]:
    """The values of a file, one a line; empty lines and lines that begin with # are left out.

    Raises:
        CorpusError: a line is no id; the file is neither UTF-8 nor UTF-16 with its mark.
    """
    data = path.read_bytes()
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        place = data[: error.start].count(b"\n") + 1
        raise CorpusError(
            f"{path}, line {place}: not {error.encoding}; `iconv -t utf-8` makes it so"
        ) from None
    found: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        value = line.strip()
        if not value or value.startswith("#"):
            continue
        if how == "domains":
            value = without_www(split(value if "//" in value else f"//{value}")[0]) or value.lower()
        elif how == "ids":
            value = value.lower()
        if how == "ids" and HEX.fullmatch(value) is None:
            raise CorpusError(
                f"{path}, line {number}: {line.strip()!r} is no id; expected 32 hex digits, as "
                '`assay sql CORPUS "select id, content_hash from documents"` shows them'
            )
        found[value] = None
    return list(found)


def _names(shown: list[dict[str, Any]], how: str) -> set[str]:
    """All values that would name one of these documents."""
    if how == "domains":
        return {key for row in shown for key in domain_keys(row.get("domain") or "")}
    fields = ("id", "content_hash") if how == "ids" else ("url", "canonical_url", "url_hash")
    return {row[field] for row in shown for field in fields if row.get(field)}


def _url_hash(url: str) -> str:
    return schema.text_hash(canonical(url).encode()).hex()


def _require_truth(root: Path, condition: str) -> None:
    """Refuse what is neither true nor false: `num_chars` would mean every document."""
    for row in _ask(root, f"select typeof({condition}) as kind from documents limit 1"):
        if row["kind"] not in ("BOOLEAN", '"NULL"'):
            raise SqlError(
                f"--where is {row['kind']}, neither true nor false; compare it, as in "
                "`num_chars < 50`"
            )


def _ask(root: Path, sql: str, asked: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Rows of a question that may speak of the values in `asked`."""
    try:
        with connect(root, names=names_in(tree_of(sql), {})) as connection:
            connection.register("asked", pa.table({"value": pa.array(asked, pa.string())}))
            rows: list[dict[str, Any]] = connection.sql(sql).to_arrow_table().to_pylist()
            return rows
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.DataError) as error:
        message = str(error).split("\nLINE")[0]
        raise SqlError(
            f'{message} (see the columns with `assay sql {root} "describe documents"`)'
        ) from None


def _shingles(root: Path, of_contents: list[str], ngram: int) -> dict[str, np.ndarray]:
    """Sorted shingle hashes of each of these contents."""
    from dedup.shingles import shingles  # loads numba: 0.5 s

    found: dict[str, np.ndarray] = {}
    for begin in range(0, len(of_contents), TEXTS_AT_ONCE):
        some = of_contents[begin : begin + TEXTS_AT_ONCE]
        rows = _ask(
            root,
            "select content_hash, any_value(text) as text from documents where content_hash in "
            "(from asked) group by 1",
            some,
        )
        texts = pa.array([row["text"] for row in rows], pa.string())
        hashes, offsets = shingles(texts, ngram)
        sets = np.split(hashes, offsets[1:-1]) if rows else []
        found |= {row["content_hash"]: own for row, own in zip(rows, sets, strict=True)}
    return found


def _near(
    root: Path, named: list[str], shingles: dict[str, np.ndarray], threshold: float
) -> list[str]:
    """Contents that form a verified pair with one of these, without these."""
    wanted = pa.array([bytes.fromhex(content) for content in named], schema.HASH)
    found: set[bytes] = set()
    for path in part_paths(root, "pairs"):
        pairs = pq.read_table(path, schema=schema.PAIRS)
        for one, other in (("a", "b"), ("b", "a")):
            mine = pairs.filter(pc.is_in(pairs[one], value_set=wanted))
            found.update(mine[other].to_pylist())
    found.update(_near_in_large_clusters(root, wanted, shingles, threshold))
    return sorted(content.hex() for content in found.difference(wanted.to_pylist()))


def _near_in_large_clusters(
    root: Path, wanted: pa.Array, shingles: dict[str, np.ndarray], threshold: float
) -> set[bytes]:
    from dedup.postings import build_index

    clusters = [
        pq.read_table(path, schema=schema.CLUSTERS).filter(pc.field("large"))
        for path in part_paths(root, "clusters")
    ]
    large = pa.concat_tables([schema.CLUSTERS.empty_table(), *clusters])
    mine = large.filter(pc.is_in(large["content_hash"], value_set=wanted))
    if not len(mine):
        return set()
    own = [shingles[content.hex()] for content in mine["content_hash"].to_pylist()]
    offsets = np.append(0, np.cumsum([len(hashes) for hashes in own]))
    index = build_index(np.concatenate(own), offsets, threshold)
    found: set[bytes] = set()
    for path in part_paths(root, "clusters/shingles"):
        for batch in pq.ParquetFile(path).iter_batches():
            sets = batch["shingles"]
            begins = np.asarray(sets.offsets).astype(np.int64)
            near = near_copies(index, np.asarray(sets.flatten()), begins - begins[0], threshold)
            found.update(batch["content_hash"].take(pa.array(near)).to_pylist())
    return found


def _rows(shown: list[dict[str, Any]], shingles: dict[str, np.ndarray]) -> pa.Table:
    """As schema.FORGOTTEN; the shingles of a content stand with the first that was named."""
    left = dict(shingles)
    rows = [
        {
            "id": bytes.fromhex(row["id"]),
            "content_hash": bytes.fromhex(row["content_hash"]) if row["content_hash"] else None,
            "why": row["why"],
            "shingles": left.pop(row["content_hash"], None) if row["why"] == "named" else None,
        }
        for row in shown
    ]
    return pa.Table.from_pylist(rows, schema.FORGOTTEN)


def near_settings(root: Path) -> tuple[int, float]:
    """Words of a shingle, and the Jaccard from which two documents are a pair."""
    near = manifest(root)["settings"]["near"]
    return int(near.get("ngram", 5)), float(near["threshold"])
