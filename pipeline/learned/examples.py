"""Examples of a class as a table: from files, from a corpus, from a corpus and labels of it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from filters import language
from filters.normalize import normalize
from filters.segments import Texts
from pipeline import schema
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.finished import reading
from pipeline.learned import agreement
from pipeline.learned.settings import ClassifierSettings, Examples
from pipeline.objects import is_url
from pipeline.predicates import predicate
from pipeline.readers import Piece, Record
from pipeline.readers.files import list_files
from pipeline.readers.formats import read
from pipeline.seeing.rubrics import rubric
from pipeline.settings import Input
from pipeline.sql import ask
from pipeline.syntax import text_literal

TABLE = pa.schema(
    [
        ("content_hash", schema.HASH),
        ("source", pa.string()),
        ("lang", pa.string()),
        ("text", pa.string()),  # as far as the model will see it
        ("good", pa.bool_()),
    ]
)
QUERY_SECONDS = 3_600.0
LANGUAGE_BATCH = 2_000


def examples(settings: ClassifierSettings) -> tuple[pa.Table, dict[str, int]]:
    """All examples, one row a content, ordered by content hash; and what was left out.

    A content that stands in both classes teaches nothing and is left out of both.

    Raises:
        ConfigError: an entry has no text.
    """
    tables = [
        _of_entry(entry, settings, good=good)
        for entries, good in ((settings.positive, True), (settings.negative, False))
        for entry in entries
    ]
    # stable: of one content in several entries the first stays
    table = pa.concat_tables(tables)
    order = pc.sort_indices(table.append_column("row", pa.array(range(table.num_rows))),
                            [("content_hash", "ascending"), ("row", "ascending")])  # fmt: skip
    table = table.take(order)
    found: dict[bytes, list[bool]] = {}
    for key, good in zip(table["content_hash"].to_pylist(), table["good"].to_pylist(), strict=True):
        found.setdefault(key, []).append(good)
    both = {key for key, classes in found.items() if len(set(classes)) > 1}
    keep, seen = [], set(both)
    for key in table["content_hash"].to_pylist():
        keep.append(key not in seen)
        seen.add(key)
    return table.filter(pa.array(keep, pa.bool_())), {
        "copies": table.num_rows - len(found),
        "in_both_classes": len(both),
    }


def _of_entry(entry: Examples, settings: ClassifierSettings, *, good: bool) -> pa.Table:
    sampled = _of_files if entry.corpus is None else _of_corpus
    table = sampled(entry, settings)
    if table.num_rows == 0:
        raise ConfigError(
            f"{entry.files or entry.corpus}: no text for the {'positive' if good else 'negative'} "
            f"class{f' where {entry.where}' if entry.where else ''}; ask `assay sql` what is there"
        )
    return table.append_column("good", pa.array([good] * table.num_rows, pa.bool_()))


# --- files ----------------------------------------------------------------------------------------


def _of_files(entry: Examples, settings: ClassifierSettings) -> pa.Table:
    assert entry.files is not None
    rows = _smallest(_read(entry), entry.max_documents, settings.seed)
    limit = settings.view.max_chars
    texts = [text for _, _, text in rows]
    languages = [
        lang
        for at in range(0, len(texts), LANGUAGE_BATCH)
        for lang in languages_of(texts[at : at + LANGUAGE_BATCH])
    ]
    columns: list[Any] = [
        [key for key, _, _ in rows],
        [source for _, source, _ in rows],
        languages,
        [text[:limit] for text in texts],
    ]
    return pa.table(columns, schema=pa.schema(list(TABLE)[:4]))


def _read(entry: Examples) -> Iterator[tuple[bytes, str, str]]:
    """(content hash, source, text) of every record; each file is a source of its own by default."""
    assert entry.files is not None
    try:
        files = list_files(entry.files)
    except OSError as error:
        raise ConfigError(str(error)) from None
    source = Input(source="files", files=entry.files, text=entry.text)
    for path, file in files:
        for item in read(Piece(path, file), source, "resiliparse"):
            text = normalize(item.text)[0] if isinstance(item, Record) else ""
            if text.strip():
                yield schema.text_hash(text.encode()), entry.source or file.split(".")[0], text


def languages_of(texts: list[str]) -> list[str]:
    found: list[str] = pa.array(
        language.measure(Texts(pa.array(texts, pa.string())), {})["lang"]
    ).to_pylist()
    return found


def _smallest(
    rows: Iterable[tuple[bytes, str, str]], most: int, seed: int
) -> list[tuple[bytes, str, str]]:
    """Those of the smallest hash of their content; holds no more than those."""
    return heapq.nsmallest(most, rows, key=lambda row: (place(row[0], seed), row[1]))


def place(content_hash: bytes, seed: int) -> int:
    """Where a content stands in the order of a seed: samples and splits follow it."""
    return int(xxhash.xxh3_64_intdigest(content_hash, seed))


# --- a corpus -------------------------------------------------------------------------------------


def _of_corpus(entry: Examples, settings: ClassifierSettings) -> pa.Table:
    assert entry.corpus is not None
    where = predicate(entry.where) if entry.where else "true"
    unknown = rows_of(entry.corpus, f"select count(*) n from documents where ({where}) is null")
    if count := unknown["n"][0].as_py():
        raise ConfigError(
            f"{entry.corpus}: the predicate {entry.where!r} is NULL for "
            f"{counted(count, 'document')}; say what is meant with coalesce(..., false)"
        )
    hashes = rows_of(
        entry.corpus,
        f"select distinct content_hash from documents where {where} and not heldout",
    )["content_hash"].to_pylist()
    if entry.labels is not None or entry.reviewed is not None:
        labelled = _labelled(entry)
        hashes = [key for key in hashes if key in labelled]
    chosen = heapq.nsmallest(
        entry.max_documents, hashes, key=lambda key: place(bytes.fromhex(key), settings.seed)
    )
    return texts_of(entry.corpus, where, chosen, settings.view.max_chars)


def texts_of(corpus: str, where: str, keys: list[str], max_chars: int) -> pa.Table:
    """The documents with these content hashes (hex), by them, one each, none held out; without
    `good`."""
    listed = ", ".join(map(text_literal, keys)) or "''"
    found = rows_of(
        corpus,
        "select content_hash, min(source) as source, min(lang) as lang, "
        f"min(left(text, {max_chars})) as text from documents "
        f"where {where} and not heldout and content_hash in ({listed}) group by content_hash",
    )
    hashes = pa.array([bytes.fromhex(key) for key in found["content_hash"].to_pylist()])
    table = found.set_column(0, "content_hash", hashes.cast(schema.HASH))
    return table.cast(pa.schema(list(TABLE)[:4])).sort_by("content_hash")


def rows_of(corpus: str, sql: str) -> pa.Table:
    """The answer to one SELECT over a corpus, a folder or URL."""
    with (
        reading(corpus) as root,
        ask(root, sql, macros={}, timeout_seconds=QUERY_SECONDS) as rows,
    ):
        return rows.read_all()


def _labelled(entry: Examples) -> set[str]:
    """Content hashes whose label lies within the bounds."""
    low = -math.inf if entry.at_least is None else entry.at_least
    high = math.inf if entry.at_most is None else entry.at_most
    scores = _scores(entry)
    return {key.hex() for key, score in scores.items() if low <= score <= high}


def _scores(entry: Examples) -> dict[bytes, float]:
    if entry.labels is not None:
        return agreement.scores(Path(entry.labels))
    assert entry.corpus is not None
    assert entry.reviewed is not None
    if is_url(entry.corpus):
        raise ConfigError(f"{entry.corpus}: labels of people are kept in a folder, not on a store")
    return agreement.reviewed(Path(entry.corpus), rubric(entry.reviewed))
