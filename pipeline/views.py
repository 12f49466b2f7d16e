"""The views of a corpus in SQL. `STANDARD_VIEWS` is the visible table; each is one SELECT.

`documents` puts everything that is known about a document into one row: its columns, each signal
group as a struct (`gopher.num_words`), language flat (`lang`), kept fields as `meta.<field>`,
presets as `<preset>.pass`, and whether it is a duplicate or held out. Hashes are 32 hex digits.

Row-aligned files are joined on (part, row number). A join costs about 0.07 s per million documents
whether its columns are used or not (DuckDB 2.0, 2 cores), so `names` leaves out what a statement
does not name; POSITIONAL JOIN was three times as fast, but silent about a missing part.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from filters.presets import PRESETS, expression, needs
from pipeline import schema
from pipeline.corpus import manifest, part_paths
from pipeline.files import read_json
from pipeline.syntax import quoted, text_literal

FLAT_GROUPS = ("language",)  # signal groups whose columns stand in `documents` by themselves
DERIVED = ("heldout", "duplicate", "near_duplicate", "kept")


@dataclass(frozen=True)
class Corpus:
    """What a view is written from."""

    root: Path
    connection: duckdb.DuckDBPyConnection
    manifest: dict[str, Any]
    groups: Mapping[str, tuple[str, ...]]  # signal group -> its columns
    presets: tuple[str, ...]  # those whose signals are there
    names: frozenset[str] | None  # what will be asked for; None: all

    @classmethod
    def open(
        cls, root: Path, connection: duckdb.DuckDBPyConnection, names: frozenset[str] | None
    ) -> Corpus:
        found = manifest(root)
        groups = {
            name: tuple(pq.read_schema(paths[0]).names)
            for name in found["signals"]
            if (paths := part_paths(root, f"signals/{name}"))
        }
        presets = tuple(name for name in PRESETS if needs(name) <= set(groups))
        if names is not None:
            names = _with_needs(names, groups, presets)
        return cls(root, connection, found, groups, presets, names)

    def asked(self, name: str) -> bool:
        return self.names is None or name.lower() in self.names

    def fields(self, group: str) -> tuple[str, ...]:
        """Columns of a group that will be asked for: DuckDB reads all that a struct is made of."""
        if self.asked(f"{group}.*"):
            return self.groups[group]
        return tuple(f for f in self.groups[group] if self.asked(f)) or self.groups[group][:1]

    def table(self, name: str, columns: pa.Schema, *, numbered: bool = False) -> str:
        """A FROM clause over all parts of a table; of no parts, an empty table."""
        paths = [str(path) for path in part_paths(self.root, name)]
        file = self.root / f"{name}.parquet"
        paths += [str(file)] if file.exists() else []
        if not paths:
            empty = f"empty {name}"
            self.connection.register(empty, columns.empty_table())
            return quoted(empty)
        files = ", ".join(text_literal(glob.escape(path)) for path in paths)
        options = ", filename = true, file_row_number = true" if numbered else ""
        return f"read_parquet([{files}]{options})"


View = Callable[[Corpus], str]


def documents(corpus: Corpus) -> str:
    columns, joins = [], []
    for name in schema.DOCUMENTS.names:
        if name == "meta" and corpus.manifest["meta"]:
            columns.append(f"{_meta(corpus.manifest['meta'])} as meta")
        else:
            columns.append(f"{_shown(schema.DOCUMENTS, name, 'd.')} as {name}")
    columns.append("d.part")
    for name, fields in corpus.groups.items():
        flat = name in FLAT_GROUPS
        if not any(corpus.asked(wanted) for wanted in ((name, *fields) if flat else (name,))):
            continue
        alias = quoted(f"signals {name}")
        joins.append(_aligned(corpus, f"signals/{name}", alias))
        if flat:
            columns += [f"{alias}.{quoted(field)}" for field in fields]
        else:
            columns.append(f"{_struct(corpus.fields(name), alias)} as {quoted(name)}")
    tokens = corpus.manifest.get("tokenizer")
    if tokens and any(corpus.asked(name) for name in schema.TOKEN_COUNTS.names):
        joins.append(_aligned(corpus, f"tokens/{tokens['hash']}/counts", "counts"))
        columns += [f"counts.{name}" for name in schema.TOKEN_COUNTS.names]
    for name in DERIVED[:3]:
        if corpus.asked(name):
            join, column = DERIVATIONS[name](corpus)
            joins.append(join)
            columns.append(f"{column} as {name}")
    if corpus.asked("kept"):
        columns.append("not heldout and not duplicate and not near_duplicate as kept")
    rows = _numbered(corpus, "documents", schema.DOCUMENTS)
    inner = f"select {', '.join(columns)} from ({rows}) as d {' '.join(joins)}"
    return f"select {_presets(corpus)} from ({inner})"


def _presets(corpus: Corpus) -> str:
    """The outer columns: `<preset>.pass`, inside the group's struct where the names are the same.

    Nothing called `pass` is stored: it is an expression over stored measurements.
    """
    replaced, added = [], []
    for name in corpus.presets:
        if corpus.asked(name) and (corpus.asked("pass") or corpus.asked(f"{name}.*")):
            passes = f"pass := ({expression(name)})"
            if name in corpus.groups:
                fields = _struct(corpus.fields(name), quoted(name)).removesuffix(")")
                replaced.append(f"{fields}, {passes}) as {quoted(name)}")
            else:
                added.append(f"struct_pack({passes}) as {quoted(name)}")
    star = f"* replace ({', '.join(replaced)})" if replaced else "*"
    return ", ".join([star, *added])


def _heldout(corpus: Corpus) -> tuple[str, str]:
    """The content stands in a held-out set, or is a verified copy of one that does."""
    return (
        f"left join ({_held_contents(corpus)}) as held on held.content_hash = d.content_hash",
        "held.content_hash is not null",
    )


def _duplicate(corpus: Corpus) -> tuple[str, str]:
    """An exact copy that is not the first of its content in the order of ids."""
    rows = corpus.table("documents", schema.DOCUMENTS)
    return (
        f"left join (select content_hash, min(id) as first from {rows} group by 1 "
        "having count(*) > 1) as copies on copies.content_hash = d.content_hash",
        "copies.first is not null and copies.first <> d.id",
    )


def _near_duplicate(corpus: Corpus) -> tuple[str, str]:
    """A content that does not stay when the whole corpus but the held-out text is selected."""
    from pipeline.unique import near_unique  # loads numba: 0.5 s, for this column alone

    held = _held_contents(corpus)
    clusters = corpus.table("clusters", schema.CLUSTERS)
    walk = corpus.connection.sql(
        f"select content_hash from {clusters} where content_hash not in ({held}) order by all"
    ).to_arrow_table()
    contents = walk["content_hash"].cast(schema.HASH).combine_chunks()
    dropped = contents.filter(pa.array(~near_unique(corpus.root, contents)))
    corpus.connection.register("near dropped", pa.table({"content_hash": dropped}))
    return (
        'left join "near dropped" as near on near.content_hash = d.content_hash',
        "near.content_hash is not null",
    )


def _held_contents(corpus: Corpus) -> str:
    sets = corpus.table("heldout/documents", schema.HELDOUT)
    matches = corpus.table("heldout/matches", schema.HELDOUT_MATCHES)
    return f"select content_hash from {sets} union select content_hash from {matches}"


DERIVATIONS: Mapping[str, Callable[[Corpus], tuple[str, str]]] = {  # -> (join, column)
    "heldout": _heldout,
    "duplicate": _duplicate,
    "near_duplicate": _near_duplicate,
}


def shards(corpus: Corpus) -> str:
    """One row per part and source of it."""
    rows = _numbered(corpus, "documents", schema.DOCUMENTS)
    return (
        "select part, source, count(*) as documents, sum(num_bytes)::bigint as bytes "
        f"from ({rows}) group by all order by all"
    )


def sources(corpus: Corpus) -> str:
    tokens = "sum(num_tokens)::bigint" if corpus.manifest.get("tokenizer") else "null::bigint"
    return (
        "select source, count(*) as documents, sum(num_bytes)::bigint as bytes, "
        f"{tokens} as tokens, avg(kept::int) as kept_share "
        "from documents group by all order by all"
    )


def stages(corpus: Corpus) -> str:
    """The totals of each stage, as JSON."""
    found = corpus.manifest["stages"]
    columns = {
        "stage": pa.array(list(found), pa.string()),
        "fingerprint": pa.array([stage["fingerprint"] for stage in found.values()], pa.string()),
        "totals": pa.array([json.dumps(s["totals"]) for s in found.values()], pa.string()),
        "seconds": pa.array([stage["seconds"] for stage in found.values()], pa.float64()),
    }
    corpus.connection.register("corpus.json stages", pa.table(columns))
    return 'select * from "corpus.json stages"'


def timings(corpus: Corpus) -> str:
    """One row per commit record: where the time went. `part` of a join is its partition."""
    records = [read_json(path) for path in sorted((corpus.root / "stats").rglob("part-*.json"))]
    columns = {
        "stage": pa.array([r["stage"] for r in records], pa.string()),
        "part": pa.array([r["part"] for r in records], pa.int32()),
        "bytes": pa.array(
            [sum(output["bytes"] for output in r["outputs"].values()) for r in records], pa.int64()
        ),
        "seconds": pa.array([r["seconds"] for r in records], pa.float64()),
        "cpu_seconds": pa.array([r["cpu_seconds"] for r in records], pa.float64()),
    }
    corpus.connection.register("commit records", pa.table(columns))
    return 'select * from "commit records"'


def _plain(table: str, columns: pa.Schema) -> View:
    def view(corpus: Corpus) -> str:
        shown = ", ".join(f"{_shown(columns, name)} as {quoted(name)}" for name in columns.names)
        return f"select {shown} from {corpus.table(table, columns)}"

    return view


STANDARD_VIEWS: Mapping[str, View] = {
    "documents": documents,
    "rejects": _plain("rejects", schema.REJECTS),
    "pairs": _plain("pairs", schema.PAIRS),
    "clusters": _plain("clusters", schema.CLUSTERS),
    "heldout": _plain("heldout/documents", schema.HELDOUT),
    "heldout_matches": _plain("heldout/matches", schema.HELDOUT_MATCHES),
    "shards": shards,
    "sources": sources,
    "stages": stages,
    "timings": timings,
}
# columns of `documents` that other names stand on
NEEDS: Mapping[str, tuple[str, ...]] = {
    "kept": ("heldout", "duplicate", "near_duplicate"),
    "sources": ("heldout", "duplicate", "near_duplicate", "kept", "num_tokens"),
}


def _with_needs(
    names: frozenset[str], groups: Mapping[str, tuple[str, ...]], presets: tuple[str, ...]
) -> frozenset[str]:
    """`names` with all that they stand on."""
    found = set(names)
    for preset in presets:
        if preset in names and {"pass", f"{preset}.*"} & names:
            found |= set(re.findall(r"\w+", expression(preset)))
    for name in names:
        found |= set(NEEDS.get(name, ()))
    return frozenset(found)


def _numbered(corpus: Corpus, table: str, columns: pa.Schema) -> str:
    """All columns, and (part, file_row_number)."""
    rows = corpus.table(table, columns, numbered=True)
    return rf"select *, regexp_extract(filename, 'part-(\d+)[^/]*$', 1)::int as part from {rows}"


def _aligned(corpus: Corpus, table: str, alias: str) -> str:
    return (
        f"left join ({_numbered(corpus, table, pa.schema([]))}) as {alias} "
        f"on {alias}.part = d.part and {alias}.file_row_number = d.file_row_number"
    )


def _struct(fields: tuple[str, ...], alias: str) -> str:
    return f"struct_pack({', '.join(f'{quoted(f)} := {alias}.{quoted(f)}' for f in fields)})"


def _meta(fields: list[str]) -> str:
    return f"struct_pack({', '.join(f'{quoted(f)} := d.meta[{text_literal(f)}]' for f in fields)})"


def _shown(columns: pa.Schema, name: str, prefix: str = "") -> str:
    column = f"{prefix}{quoted(name)}"
    return f"lower(hex({column}))" if columns.field(name).type == schema.HASH else column
