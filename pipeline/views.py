"""The views of a corpus in SQL. `STANDARD_VIEWS` is the visible table; each is one SELECT.

`documents` puts everything that is known about a document into one row: its columns, each signal
group as a struct (`gopher.num_words`), language flat (`lang`), kept fields as `meta.<field>`,
presets as `<preset>.pass`, kept languages as `languages.pass`, and whether it is a duplicate or
held out. Hashes are 32 hex digits.

Row-aligned files are joined on (part, row number); POSITIONAL JOIN was three times as fast (DuckDB
2.0), but silent about a missing part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from filters.presets import PROSE_GROUPS, of_prose
from pipeline import schema, translations
from pipeline.forgotten import listed
from pipeline.places import domains, labels, lines, sources
from pipeline.relations import (
    FLAT_GROUPS,
    LANGUAGES,
    NOT_MERGED,
    OUTCOMES,
    Corpus,
    View,
    numbered,
)
from pipeline.syntax import quoted, text_literal
from pipeline.totals import costs, shards, stages, timings

DERIVED = (
    "heldout",
    "duplicate",
    "near_duplicate",
    "contained",
    "cluster_size",
    "translation_group",
    "kept",
)


def documents(corpus: Corpus) -> str:
    columns, joins = [], []
    merged = corpus.is_merged("documents")
    for name in schema.DOCUMENTS.names:
        if merged and name in NOT_MERGED:
            continue
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
            values = {field: f"{alias}.{quoted(field)}" for field in corpus.fields(name)}
            if name in PROSE_GROUPS:
                values = {field: of_prose(sql, "d.kind") for field, sql in values.items()}
            columns.append(f"{_packed(values)} as {quoted(name)}")
    tokens = corpus.manifest.get("tokenizer")
    if tokens and any(corpus.asked(name) for name in schema.TOKEN_COUNTS.names):
        joins.append(_aligned(corpus, f"tokens/{tokens['hash']}/counts", "counts"))
        columns += [f"counts.{name}" for name in schema.TOKEN_COUNTS.names]
    if corpus.has("copies") and any(corpus.asked(name) for name in schema.COPIES.names):
        joins.append(_aligned(corpus, "copies", "copies"))
        columns += [
            f"{_shown(schema.COPIES, name, 'copies.')} as {name}" for name in schema.COPIES.names
        ]
    for name in DERIVATIONS:
        if corpus.asked(name):
            join, column = DERIVATIONS[name](corpus)
            joins.append(join)
            columns.append(f"{column} as {name}")
    if corpus.asked("kept"):
        columns.append("not heldout and not duplicate and not near_duplicate as kept")
    rows = numbered(corpus, "documents", schema.DOCUMENTS)
    inner = f"select {', '.join(columns)} from ({rows}) as d {' '.join(joins)} {_standing(corpus)}"
    return f"select {_presets(corpus)} from ({inner})"


def _standing(corpus: Corpus) -> str:
    """Leave out what the corpus was told to forget: rows of which only their identity is left, and
    those whose text has not gone yet. See forgotten.py."""
    if not listed(corpus.root):
        return ""
    return (
        "where d.num_bytes is not null and not exists (select 1 from "
        f"({corpus.forgotten()}) as f where f.content_hash = d.content_hash)"
    )


def _presets(corpus: Corpus) -> str:
    """The outer columns: `<preset>.pass` and `.reason`, inside the group's struct where the names
    are the same.

    Nothing called `pass` is stored: it is an expression over stored measurements.
    """
    replaced, added = [], []
    for name in corpus.presets:
        whole = corpus.asked(f"{name}.*")
        columns = [
            f"{column} := ({sql(name)})"
            for column, sql in OUTCOMES.items()
            if whole or corpus.asked(column)
        ]
        if corpus.asked(name) and columns:
            derived = ", ".join(columns)
            if name in corpus.groups:
                fields = _struct(corpus.fields(name), quoted(name)).removesuffix(")")
                replaced.append(f"{fields}, {derived}) as {quoted(name)}")
            else:
                added.append(f"struct_pack({derived}) as {quoted(name)}")
    if corpus.languages:
        added.append(f"struct_pack(pass := ({corpus.languages})) as {quoted(LANGUAGES)}")
    star = f"* replace ({', '.join(replaced)})" if replaced else "*"
    return ", ".join([star, *added])


def _heldout(corpus: Corpus) -> tuple[str, str]:
    """The content stands in a held-out set, is a verified copy of one that does, or is of the
    translation group of one of these."""
    return (
        f"left join ({_held_contents(corpus)}) as held on held.content_hash = d.content_hash",
        "held.content_hash is not null",
    )


def _duplicate(corpus: Corpus) -> tuple[str, str]:
    """An exact copy that is not the first of its content in the order of ids."""
    rows = corpus.table("documents", schema.DOCUMENTS)
    return (
        f"left join (select content_hash, min(id) as first from {rows} group by 1 "
        "having count(*) > 1) as firsts on firsts.content_hash = d.content_hash",
        "firsts.first is not null and firsts.first <> d.id",
    )


def _near_duplicate(corpus: Corpus) -> tuple[str, str]:
    """A content that does not stay when the whole corpus but the held-out text is selected."""
    if corpus.sketch:
        return "", "null::boolean"
    from pipeline.unique import near_unique  # loads numba: 0.5 s, for this column alone

    clusters = corpus.table("clusters", schema.CLUSTERS)
    contents = _walk(corpus, f"select content_hash from {clusters}")
    dropped = contents.filter(pa.array(~near_unique(corpus.root, contents)))
    return _dropped(corpus, "near dropped", dropped)


def _contained(corpus: Corpus) -> tuple[str, str]:
    """A content that stays among near duplicates, but another one that does holds it. NULL where
    the corpus was made without looking for that."""
    if not _is_looked_for(corpus):
        return "", "null::boolean"
    from pipeline.unique import near_unique, outermost

    clusters = corpus.table("clusters", schema.CLUSTERS)
    pairs = corpus.table("contained", schema.CONTAINED)
    contents = _walk(
        corpus,
        f"select content_hash from {clusters} union select content_hash from {pairs} "
        f"union select holder from {pairs}",
    )
    contents = contents.filter(pa.array(near_unique(corpus.root, contents)))
    dropped = contents.filter(pa.array(~outermost(corpus.root, contents)))
    return _dropped(corpus, "contained dropped", dropped)


def _is_looked_for(corpus: Corpus) -> bool:
    """What holds what; where it was, in an earlier state of the corpus, the table may still be
    there."""
    return corpus.manifest["settings"]["near"].get("containment") is not None


def _walk(corpus: Corpus, contents: str) -> pa.Array:
    """Of what this SELECT gives, contents that may stay, in their order."""
    walk = corpus.connection.sql(
        f"select content_hash from ({contents}) where content_hash not in "
        f"({_held_contents(corpus)}) and content_hash not in ({corpus.forgotten(all_calls=True)}) "
        "order by all"
    ).to_arrow_table()
    return walk["content_hash"].cast(schema.HASH).combine_chunks()


def _dropped(corpus: Corpus, name: str, contents: pa.Array) -> tuple[str, str]:
    """A join and a column: is the content of a document among these?"""
    corpus.connection.register(name, pa.table({"content_hash": contents}))
    found = quoted(f"{name} contents")
    return (
        f"left join {quoted(name)} as {found} on {found}.content_hash = d.content_hash",
        f"{found}.content_hash is not null",
    )


def _cluster_size(corpus: Corpus) -> tuple[str, str]:
    """Documents with this text or a near copy of it: those of its cluster, or of its content."""
    rows = corpus.table("documents", schema.DOCUMENTS)
    clusters = corpus.table("clusters", schema.CLUSTERS)
    copies = f"select content_hash, count(*) as documents from {rows} group by 1"
    return (
        "left join (select content_hash, sum(documents) over (partition by "
        "coalesce(cluster, content_hash))::bigint as documents "
        f"from ({copies}) left join {clusters} as found using (content_hash)) as family "
        "on family.content_hash = d.content_hash",
        "family.documents",
    )


def _translation_group(corpus: Corpus) -> tuple[str, str]:
    return "", corpus.translation_group("d.") or "null::varchar"


def _held_contents(corpus: Corpus) -> str:
    sets = corpus.table("heldout/documents", schema.HELDOUT)
    matches = corpus.table("heldout/matches", schema.HELDOUT_MATCHES)
    held = f"select content_hash from {sets} union select content_hash from {matches}"
    if not (name := corpus.translation_group()):
        return held
    rows = corpus.table("documents", schema.DOCUMENTS)
    of_held = f"select {name} from {rows} where {name} is not null and content_hash in ({held})"
    return f"{held} union select content_hash from {rows} where {name} in ({of_held})"


DERIVATIONS: Mapping[str, Callable[[Corpus], tuple[str, str]]] = {  # -> (join, column)
    "heldout": _heldout,
    "duplicate": _duplicate,
    "near_duplicate": _near_duplicate,
    "contained": _contained,
    "cluster_size": _cluster_size,
    translations.COLUMN: _translation_group,
}


def _aligned(corpus: Corpus, table: str, alias: str) -> str:
    return (
        f"left join ({numbered(corpus, table, pa.schema([]))}) as {alias} "
        f"on {alias}.part = d.part and {alias}.file_row_number = d.file_row_number"
    )


def _struct(fields: tuple[str, ...], alias: str) -> str:
    return _packed({field: f"{alias}.{quoted(field)}" for field in fields})


def _packed(values: Mapping[str, str]) -> str:
    """A struct of these columns, each an expression."""
    return f"struct_pack({', '.join(f'{quoted(name)} := {sql}' for name, sql in values.items())})"


def _meta(fields: list[str]) -> str:
    return f"struct_pack({', '.join(f'{quoted(f)} := d.meta[{text_literal(f)}]' for f in fields)})"


def _shown(columns: pa.Schema, name: str, prefix: str = "") -> str:
    column = f"{prefix}{quoted(name)}"
    return f"lower(hex({column}))" if columns.field(name).type == schema.HASH else column


def _all_shown(columns: pa.Schema) -> str:
    """`end` is a word of SQL, so places in a text have other names here than on the disk."""
    called = {"start": "start_byte", "end": "end_byte"}
    return ", ".join(
        f"{_shown(columns, name)} as {quoted(called.get(name, name))}" for name in columns.names
    )


def _plain(table: str, columns: pa.Schema) -> View:
    def view(corpus: Corpus) -> str:
        return f"select {_all_shown(columns)} from {corpus.table(table, columns)}"

    return view


def edits(corpus: Corpus) -> str:
    """The edits of all editors; `name` is what a mixture calls them by."""
    columns = _all_shown(schema.EDITS)
    tables = {name: f"edits/{name}" for name in corpus.manifest.get("edits", ())} or {"": "edits"}
    return " union all ".join(
        f"select {text_literal(name)} as name, {columns} from {corpus.table(table, schema.EDITS)}"
        for name, table in tables.items()
    )


def contained(corpus: Corpus) -> str:
    pairs = _plain("contained", schema.CONTAINED)(corpus)
    return pairs if _is_looked_for(corpus) else f"{pairs} where false"


STANDARD_VIEWS: Mapping[str, View] = {
    "documents": documents,
    "rejects": _plain("rejects", schema.REJECTS),
    "edits": edits,
    "pairs": _plain("pairs", schema.PAIRS),
    "clusters": _plain("clusters", schema.CLUSTERS),
    "substrings": _plain("substrings", schema.SUBSTRINGS),
    "contained": contained,
    "heldout": _plain("heldout/documents", schema.HELDOUT),
    "heldout_matches": _plain("heldout/matches", schema.HELDOUT_MATCHES),
    "evaluation_items": _plain("contamination/items", schema.EVALUATION_ITEMS),
    "shards": shards,
    "sources": sources,
    "domains": domains,
    "lines": lines,
    "labels": labels,
    "stages": stages,
    "timings": timings,
    "costs": costs,
}
