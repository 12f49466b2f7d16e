"""One pass over the `documents` view of a corpus: which documents does a mixture's SQL select?

Held-out text is left out here, outside of the predicates, so that no `where` can bring it back.
A predicate that is NULL for some document stops the plan (design, rule 3), and what no source wants
is counted. Memory holds a few columns of the documents that some source selects, never text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mixtures import parallel
from mixtures.copies import LEVELS, split_direction
from mixtures.spec import Mixture
from pipeline import frozen
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.corpus import manifest, part_paths
from pipeline.forgotten import contents, listed
from pipeline.predicates import predicate, predicate_columns
from pipeline.sql import ask
from pipeline.syntax import SqlError, text_literal
from pipeline.whole import require_whole, vouched

TIMEOUT_SECONDS = 3_600.0  # a plan reads a few columns: 1e8 documents take minutes


@dataclass(frozen=True)
class Unclaimed:
    """Documents that no source wants; held-out text is not among them."""

    corpus: str
    source: str
    language: str
    documents: int
    num_bytes: int


@dataclass(frozen=True)
class Candidates:
    """The documents of a corpus that some source selects, and counts of the others.

    Columns of `rows`: corpus, id, content_hash, num_bytes, `copy` (equal for copies of each other);
    cluster_size where some source repeats by it; what `Source.asked` asks of each document, as
    `where_<i>` for the i-th source of the mixture, null where it reads another corpus;
    `prefer_<i>` for each expression of `prefer`.
    """

    rows: pa.Table
    heldout: int  # documents that some source selects, left out as held-out text
    unclaimed: tuple[Unclaimed, ...]


def candidates(
    mixture: Mixture, corpus: str, excluded: pa.Array, forgotten: pa.Array
) -> Candidates:
    """Ask one corpus.

    Args:
        excluded: content hashes (hex) that stay out: see `heldout_hashes`.
        forgotten: those that another corpus of the mixture was told to forget; not even counted.

    Raises:
        ConfigError: a predicate cannot be used, or is NULL for some document; or near copies of
            another corpus's held-out text were not looked for here.
    """
    _require_matched(mixture, corpus)
    _require_copies(mixture, corpus)
    reading = {
        at: name
        for at, name in enumerate(mixture.sources)
        if mixture.sources[name].corpus == corpus
    }
    heldout, wanted = 0, []
    nulls = Counter[tuple[str, str, str]]()
    left, left_bytes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for batch in _ask(mixture, corpus, reading):
        if len(forgotten):
            batch = batch.filter(pc.invert(pc.is_in(batch["content_hash"], value_set=forgotten)))
        out = np.asarray(pc.is_in(batch["content_hash"], value_set=excluded))
        claimed = np.zeros(len(out), bool)
        for at, name in reading.items():
            missing = mixture.sources[name].missing
            if missing is None:
                where = mixture.sources[name].where
                nulls += _nulls(batch.filter(pa.array(~out)), at, name, where)
            batch = _replace(
                batch, f"where_{at}", batch[f"where_{at}"].fill_null(missing == "keep")
            )
            claimed |= np.asarray(batch[f"where_{at}"])
        heldout += int((claimed & out).sum())
        kept = [column for column in batch.column_names if not column.startswith("null_")]
        wanted.append(batch.filter(pa.array(claimed & ~out)).select(kept))
        rest = batch.filter(pa.array(~claimed & ~out)).group_by(["source", "lang"])
        for row in rest.aggregate([("num_bytes", "count"), ("num_bytes", "sum")]).to_pylist():
            left[row["source"], row["lang"]] += row["num_bytes_count"]
            left_bytes[row["source"], row["lang"]] += row["num_bytes_sum"]
    _refuse_nulls(nulls)
    return Candidates(
        rows=pa.concat_tables(wanted),
        heldout=heldout,
        unclaimed=tuple(
            Unclaimed(corpus, *key, documents=num, num_bytes=left_bytes[key])
            for key, num in sorted(left.items())
        ),
    )


def _require_matched(mixture: Mixture, corpus: str) -> None:
    """All corpora of a mixture are evaluated on: `prepare` must have matched this one against the
    held-out text of each, or near and contained copies of it would be trained on."""
    root = Path(mixture.corpora[corpus])
    own = _held(root)
    for name, other in mixture.corpora.items():
        held = _held(Path(other))
        if held - own:
            raise ConfigError(
                f"corpus {corpus!r} was not searched for copies of the held-out text of {name!r}: "
                f"{len(held - own)} of its {len(held)} texts are unknown in {root}; add `heldout: "
                f"{{keep: [{other}/heldout.json]}}` to the corpus.yaml of {corpus!r} and call "
                "`assay prepare` again"
            )


def _require_copies(mixture: Mixture, corpus: str) -> None:
    root = mixture.corpora[corpus]
    if mixture.unique in ("url", "folded") and not part_paths(Path(root), "copies"):
        raise ConfigError(
            f"corpus {corpus!r} ({root}) is of an older version, which did not know copies by "
            f"`unique: {mixture.unique}`; call `assay prepare` for it again, or use `unique: exact`"
        )
    looked_for = manifest(Path(root))["settings"]["near"].get("containment") is not None
    if mixture.unique == "contained" and not looked_for:
        raise ConfigError(
            f"corpus {corpus!r} ({root}): which documents hold which was not looked for, since all "
            "texts are read twice for it; add `near: {containment: 0.9}` to its corpus.yaml and "
            "call `assay prepare` again, or use `unique: near`"
        )


def heldout_hashes(roots: list[Path]) -> pa.Array:
    """Contents (hex) that no arm trains on: the held-out sets of all corpora, verified copies, and
    what is of a translation group of one of these.

    Raises:
        ConfigError: a corpus has no sets, or they are damaged.
        CorpusError: what is known of their copies is damaged.
    """
    matches = []
    for root in roots:
        frozen.recorded(root)  # hashes the sets
        known = vouched((root / "stats" / "matches").glob("part-*.json"))
        for path in part_paths(root, "heldout/matches"):
            require_whole(root, str(path.relative_to(root)), known)
            matches.append(path)
    contents = set().union(*map(_held, roots), *map(_contents, matches))
    held = pa.array(sorted(content.hex() for content in contents), pa.string())
    return parallel.with_translations(roots, held)


def forgotten_hashes(roots: list[Path]) -> pa.Array:
    """Contents (hex) that one of these corpora was told to forget: no other brings them back."""
    found = {h for root in roots for h in contents(listed(root)).to_pylist()}
    return pa.array(sorted(content.hex() for content in found), pa.string())


def _held(root: Path) -> set[bytes]:
    path = root / "heldout" / "documents.parquet"
    if not path.exists():
        raise ConfigError(
            f"corpus {root} has no {path.relative_to(root)}: what may not be trained on is not "
            "known; put it back, or call `assay prepare` for the corpus"
        )
    return _contents(path)


def _contents(path: Path) -> set[bytes]:
    return set(pq.read_table(path, columns=["content_hash"])["content_hash"].to_pylist())


def _ask(mixture: Mixture, corpus: str, reading: dict[int, str]) -> Iterator[pa.Table]:
    """Every document of a corpus, with the value of each predicate and preference."""
    columns = ["corpus", "id", "content_hash", "num_bytes", "source"]
    columns.append("coalesce(lang, '') as lang")
    columns.append(f"{LEVELS.get(mixture.unique, 'null::varchar')} as copy")
    if any(source.repeats for source in mixture.sources.values()):
        columns.append("cluster_size")
    for at, name in reading.items():
        source = mixture.sources[name]
        columns += [f"{sql} as {column}_{at}" for column, sql in source.asked().values()]
        for number, column in enumerate(predicate_columns(source.where)):
            columns.append(f"({column}) is null as null_{at}_{number}")
    for at, expression in enumerate(mixture.prefer):
        columns.append(f"{predicate(split_direction(expression)[0])} as prefer_{at}")
    root = Path(mixture.corpora[corpus])
    query = f"select {', '.join(columns)} from {asked_of(corpus)}"
    try:
        with ask(root, query, macros={}, timeout_seconds=TIMEOUT_SECONDS) as batches:
            yield pa.Table.from_batches([], batches.schema)
            for batch in batches:
                yield pa.Table.from_batches([batch])
    except SqlError as error:
        raise ConfigError(_mistake(mixture, corpus, reading, error)) from None


def asked_of(corpus: str) -> str:
    """What the predicates of a mixture are asked of: the documents, and the column `corpus`."""
    return f"documents, (select {text_literal(corpus)} as corpus) as named"


def _mistake(mixture: Mixture, corpus: str, reading: dict[int, str], error: SqlError) -> str:
    """The key that a corpus refuses: each is asked alone, until one fails."""
    root, key = Path(mixture.corpora[corpus]), "the mixture"
    expressions = {
        f"sources.{name}.{key}": sql
        for name in reading.values()
        for key, (_, sql) in mixture.sources[name].asked().items()
    }
    for entry in mixture.prefer:
        expressions[f"prefer`, `{entry}"] = predicate(split_direction(entry)[0])
    for name, sql in expressions.items():
        query = f"select count({sql}) from {asked_of(corpus)}"
        try:
            with ask(root, query, macros={}, timeout_seconds=TIMEOUT_SECONDS) as batches:
                batches.read_all()
        except SqlError as alone:
            key, error = f"key `{name}`", alone
            break
    lines = str(error).split("\n")  # without our query around their predicate, and its caret
    shown = [line for line in lines if not line.startswith("LINE ") and line.strip(" ^")]
    return (
        f"{key}: corpus {corpus!r} cannot be asked: {'; '.join(shown)} (see its columns with "
        f'`assay sql {root} "describe documents"`)'
    )


def _nulls(batch: pa.Table, at: int, name: str, where: str) -> Counter[tuple[str, str, str]]:
    """Documents for which a predicate is NULL, by source of the mixture, column that is NULL too
    (empty where none is), and source of the corpus."""
    found = Counter[tuple[str, str, str]]()
    if not batch[f"where_{at}"].null_count:
        return found
    rows = batch.filter(batch[f"where_{at}"].is_null())
    columns = {f"null_{at}_{number}": c for number, c in enumerate(predicate_columns(where))}
    for row in rows.select(["source", *columns]).to_pylist():
        guilty = [column for flag, column in columns.items() if row[flag]]
        found.update((name, column, row["source"]) for column in guilty or [""])
    return found


def _refuse_nulls(nulls: Counter[tuple[str, str, str]]) -> None:
    if not nulls:
        return
    lines = [
        f"  source {name!r}: {f'column {column}' if column else 'the predicate'} is NULL for "
        f"{counted(num, 'document')} of {source!r}"
        for (name, column, source), num in sorted(nulls.items())
    ]
    raise ConfigError(
        "a `where` is NULL, neither true nor false, for some documents:\n"
        + "\n".join(lines)
        + "\nstate what is meant: `missing: keep` or `missing: drop` at the source, or measure the "
        "signal for them"
    )


def _replace(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)
