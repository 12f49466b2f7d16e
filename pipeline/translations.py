"""Parallel pages: documents that say the same in several languages, by `translation_group` of
corpus.yaml.

A group is known by its name, a function of one document alone: so it is the same in every part, and
in every corpus of which the key is the same. It stands in SQL, `documents.translation_group`; what
is done with it: held-out sets are chosen by it (transforms/heldout.py), whoever is of the group of
a held-out text is not trained on (mixtures/parallel.py), and `group: translation_group` packs its
members into one window.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from pipeline.syntax import text_literal

if TYPE_CHECKING:
    from pipeline.heldout_settings import TranslationGroup

COLUMN = "translation_group"
# http and https, www., a fragment say nothing of the page
_SAME = r"'^https?:(//)(?:www\.)?|#.*$', '\1', 'g'"


def name_of(group: TranslationGroup, table: str = "") -> str:
    """The name of the group of a document, in SQL over schema.DOCUMENTS; NULL: of none.

    Args:
        table: what stands before the names of columns, as in `d.`.
    """
    if group.field is not None:
        field = text_literal(group.field.removeprefix("meta."))
        return f"nullif({table}meta[{field}], '')"
    address = f"regexp_replace({table}url, {_SAME})"
    name, found = address, []
    for variants in group.url or ():
        longest = sorted(variants, key=len, reverse=True)  # before those that it begins with
        pattern = text_literal("|".join(map(re.escape, longest)))
        first = text_literal(variants[0].replace("\\", r"\\"))
        found.append(f"regexp_matches({address}, {pattern})")
        name = f"regexp_replace({name}, {pattern}, {first}, 'g')"
    return f"case when {' or '.join(found)} then regexp_replace({name}, '/+$', '') end"


def names(documents: Path, group: TranslationGroup) -> pa.Array:
    """Of each document of a part, in their order, the name of its group; null: of none."""
    query = f"select {name_of(group)} as name from read_parquet(?)"
    with duckdb.connect(config={"threads": 1}) as connection:
        found: pa.Table = connection.sql(query, params=[str(documents)]).to_arrow_table()
    return found["name"].combine_chunks()
