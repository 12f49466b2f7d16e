"""What the views of a corpus are written from: its manifest, its groups, its files as relations.

A join costs about 0.07 s per million documents whether its columns are used or not (DuckDB 2.0, 2
cores), so `names` leaves out what a statement does not name.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from filters import kept_languages
from filters.presets import expression, first_reason
from pipeline import forgotten, measured, schema, translations
from pipeline.corpus import CorpusError, manifest, part_paths
from pipeline.syntax import quoted, text_literal

# columns of `documents` that other names stand on
NEEDS: Mapping[str, tuple[str, ...]] = {
    "kept": ("heldout", "duplicate", "near_duplicate"),
    "sources": ("heldout", "duplicate", "near_duplicate", "kept", "num_tokens"),
    "domains": ("heldout", "duplicate", "near_duplicate", "kept", "num_tokens"),
    "lines": ("text",),
    "most_repeated_line": ("text",),
}
OUTCOMES = {"pass": expression, "reason": first_reason}  # of a preset: column -> its SQL
PLACES = {"sources", "domains"}  # views of `documents` in groups
LANGUAGES = "languages"  # a key of corpus.yaml, and the column of what it says of a document
READ_BY_LANGUAGES = {"lang", "lang_score"}
FLAT_GROUPS = ("language",)  # signal groups whose columns stand in `documents` by themselves
NOT_MERGED = ("text",)  # columns that stand in the parts alone: see pipeline/merged.py


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def merged_folder(table: str) -> str:
    """Where a table stands in few files."""
    return f"merged/{table}"


@dataclass(frozen=True)
class Corpus:
    """What a view is written from."""

    root: Path
    connection: duckdb.DuckDBPyConnection
    manifest: dict[str, Any]
    groups: Mapping[str, tuple[str, ...]]  # signal group -> its columns
    numbers: Mapping[str, tuple[str, ...]]  # ... -> those of them that are numbers
    presets: tuple[str, ...]  # those whose signals are there, and whose outcome is asked for
    names: frozenset[str] | None  # what will be asked for; None: all
    sketch: bool = False  # to see whether a statement binds: what is dear is left out

    @classmethod
    def open(
        cls,
        root: Path,
        connection: duckdb.DuckDBPyConnection,
        names: frozenset[str] | None,
        *,
        sketch: bool = False,
    ) -> Corpus:
        found, schemas = manifest(root), measured.schemas(root)
        groups = {name: tuple(columns.names) for name, columns in schemas.items()}
        numbers = {
            name: tuple(field.name for field in columns if is_number(field.type))
            for name, columns in schemas.items()
        }
        presets = measured.presets(groups)
        if names is not None:
            # Asked for by name: a preset reads groups that have the name of another one.
            every = names & PLACES and "pass.*" in names  # `pass` of a source: all of them
            presets = tuple(
                p for p in presets if every or (p in names and {*OUTCOMES, f"{p}.*"} & names)
            )
            names = _with_needs(names, groups, presets)
        return cls(root, connection, found, groups, numbers, presets, names, sketch)

    def asked(self, name: str) -> bool:
        return self.names is None or name.lower() in self.names

    def forgotten(self, *, all_calls: bool = False) -> str:
        """A SELECT of the contents that the corpus was told to forget; of those whose text may
        still stand, or of `all_calls`."""
        calls = [c for c in forgotten.listed(self.root) if all_calls or not c.done]
        name = f"forgotten {'ever' if all_calls else 'now'}"
        self.connection.register(name, pa.table({"content_hash": forgotten.contents(calls)}))
        return f"select content_hash from {quoted(name)}"

    @property
    def languages(self) -> str:
        """`languages.pass`, as SQL; "" where nobody asks for it, or what it reads is not there."""
        asked = self.asked(LANGUAGES) and (self.asked("pass") or self.asked(f"{LANGUAGES}.*"))
        if not asked or not set(self.groups.get("language", ())) >= READ_BY_LANGUAGES:
            return ""
        return kept_languages.expression(self.manifest["settings"][LANGUAGES])

    def translation_group(self, table: str = "") -> str:
        """The name of a document's translation group, in SQL; "" where the corpus was not told of
        any."""
        told = self.manifest["settings"].get(translations.COLUMN)
        if told is None:
            return ""
        if told.get("hreflang"):
            groups = self.table("translations", schema.TRANSLATIONS)
            return f"(select name from {groups} where document = {table}id)"
        from pipeline.heldout_settings import TranslationGroup  # 0.1 s, for these corpora alone

        return translations.name_of(TranslationGroup(**told), table)

    def fields(self, group: str) -> tuple[str, ...]:
        """Columns of a group that will be asked for: DuckDB reads all that a struct is made of."""
        if self.asked(f"{group}.*"):
            return self.groups[group]
        return tuple(f for f in self.groups[group] if self.asked(f)) or self.groups[group][:1]

    def has(self, table: str) -> bool:
        """Does a corpus of an older version have it?"""
        return self.is_merged(table) or bool(part_paths(self.root, table))

    def is_merged(self, table: str) -> bool:
        """Whether few files hold all of a table that will be asked for: see pipeline/merged.py."""
        whole = table == "documents" and any(map(self.asked, NOT_MERGED))
        return table in self.manifest.get("merged", ()) and not whole

    def table(self, name: str, columns: pa.Schema, *, numbered: bool = False) -> str:
        """A FROM clause over all parts of a table; of no parts, an empty table."""
        if self.is_merged(name):
            name, numbered = merged_folder(name), False  # with columns that say where a row stands
        paths = [str(path) for path in part_paths(self.root, name)]
        file = self.root / f"{name}.parquet"
        paths += [str(file)] if file.exists() else []
        if not paths and not columns.names:
            raise CorpusError(
                f"{self.root}: nothing is left of the table {name}, though the corpus is finished; "
                "`assay prepare` makes it again"
            )
        if not paths:
            empty = f"empty {name}"
            self.connection.register(empty, columns.empty_table())
            return quoted(empty)
        files = ", ".join(text_literal(glob.escape(path)) for path in paths)
        options = ", filename = true, file_row_number = true" if numbered else ""
        return f"read_parquet([{files}]{options})"


View = Callable[[Corpus], str]


def numbered(corpus: Corpus, table: str, columns: pa.Schema) -> str:
    """All columns, and (part, file_row_number)."""
    rows = corpus.table(table, columns, numbered=True)
    if corpus.is_merged(table):
        return f"select * from {rows}"
    return rf"select *, regexp_extract(filename, 'part-(\d+)[^/]*$', 1)::int as part from {rows}"


def _with_needs(
    names: frozenset[str], groups: Mapping[str, tuple[str, ...]], presets: tuple[str, ...]
) -> frozenset[str]:
    """`names` with all that they stand on."""
    found = set(names)
    for preset in presets:
        found |= {preset, "pass", *re.findall(r"\w+", expression(preset))}
    if LANGUAGES in names:
        found |= READ_BY_LANGUAGES | {"num_chars"}
    for name in names:
        found |= set(NEEDS.get(name, ()))
    if "flagged" in names and names & PLACES:
        found |= set(re.findall(r"\w+", " ".join(measured.flags(groups).values())))
    if "median" in names and names & PLACES:
        found |= {word for name, fields in groups.items() for word in (name, f"{name}.*", *fields)}
    return frozenset(found)
