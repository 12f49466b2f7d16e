"""How each signal spreads by language and source, and which documents stand next to a threshold.

Asked a signal group at a time: the columns of a group stand in one file, and a question costs more
to prepare than to answer on a small corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from pipeline.corpus import manifest, part_paths
from pipeline.relations import FLAT_GROUPS, is_number
from pipeline.seeing.asking import Row, rows
from pipeline.syntax import text_literal

BINS = 40
TAIL = 0.002  # of the documents on each side stands in the outermost bins
NEAREST = 6  # documents that are shown of a threshold


@dataclass(frozen=True)
class Histogram:
    """Documents of one language in equal bins from `low` to `high`; what lies beyond stands in the
    outermost bins."""

    signal: str
    language: str
    low: float
    high: float
    counts: dict[str, npt.NDArray[np.int64]]  # source -> (BINS,), the largest first
    median: dict[str, float]  # source -> median


class Bound(NamedTuple):
    """A threshold on a value, in SQL, for a language."""

    language: str
    value: str
    threshold: float


def numeric_signals(root: Path) -> dict[str, list[str]]:
    """Of each group every measured number, as `documents` names it."""
    found = {}
    for group in manifest(root)["signals"]:
        paths = part_paths(root, f"signals/{group}")
        fields = [f.name for f in pq.read_schema(paths[0]) if is_number(f.type)] if paths else []
        found[group] = fields if group in FLAT_GROUPS else [f"{group}.{name}" for name in fields]
    return {group: names for group, names in found.items() if names}


def histograms(root: Path, values: dict[str, str], languages: list[str]) -> list[Histogram]:
    """One for each name and language in which its value has any.

    Args:
        values: name -> SQL of a number of a document; of one group, best.
    """
    asked = ", ".join(
        f"quantile_disc({sql}, [{TAIL}, {1 - TAIL}])::double[] as v{i}"
        for i, sql in enumerate(values.values())
    )
    listed = ", ".join(map(text_literal, languages))
    borders = rows(
        root, f"select lang, {asked} from documents where lang in ({listed}) group by lang"
    )
    by_language = {row["lang"]: row for row in borders}
    found: list[Histogram] = []
    for language in languages:
        if language in by_language:
            found += _of_language(root, values, language, by_language[language])
    return found


def _of_language(
    root: Path, values: dict[str, str], language: str, borders: Row
) -> Iterator[Histogram]:
    scales = [_scale(borders[f"v{i}"]) for i in range(len(values))]
    asked = ", ".join(
        f"histogram(least(greatest(floor(({sql} - {low!r}) / {width!r}), 0), {BINS - 1})::int) "
        f"filter ({sql} is not null) as h{i}, median({sql})::double as m{i}"
        for i, (sql, (low, width)) in enumerate(zip(values.values(), scales, strict=True))
    )
    of = f"from documents where lang = {text_literal(language)}"
    sources = rows(root, f"select source, {asked} {of} group by source")
    for i, (name, (low, width)) in enumerate(zip(values, scales, strict=True)):
        counts = {row["source"]: _bins(row[f"h{i}"]) for row in sources if row[f"h{i}"]}
        most = sorted(counts, key=lambda source: (-int(counts[source].sum()), source))
        if most:
            yield Histogram(
                name,
                language,
                low,
                low + width * BINS,
                {source: counts[source] for source in most},
                {row["source"]: row[f"m{i}"] for row in sources if row[f"h{i}"]},
            )


def _scale(borders: Sequence[float] | None) -> tuple[float, float]:
    """Where bins begin, and their width."""
    low, high = borders or (0.0, 0.0)
    return low, (high - low) / BINS or 1.0 / BINS


def _bins(counts: list[tuple[int, int]]) -> npt.NDArray[np.int64]:
    found = np.zeros(BINS, np.int64)
    for place, documents in counts:
        found[place] = documents
    return found


def nearest(root: Path, bounds: Sequence[Bound]) -> dict[Bound, list[Row]]:
    """Documents closest to each threshold: id, source, value, `head` of the text."""
    found: dict[Bound, list[Row]] = {}
    for language in dict.fromkeys(bound.language for bound in bounds):
        mine = [bound for bound in bounds if bound.language == language]
        asked = ", ".join(
            f"min_by({{'id': id, 'source': source, 'value': ({b.value})::double}}, "
            f"{{'far': abs({b.value} - {b.threshold!r}), 'id': id}}, {NEAREST}) "
            f"filter ({b.value} is not null) as n{i}"
            for i, b in enumerate(mine)
        )
        of = f"from documents where lang = {text_literal(language)}"
        (answer,) = rows(root, f"select {asked} {of}")
        found |= {bound: answer[f"n{i}"] or [] for i, bound in enumerate(mine)}
    ids = sorted({row["id"] for documents in found.values() for row in documents})
    if not ids:
        return found
    listed = ", ".join(map(text_literal, ids))
    heads = rows(root, f"select id, left(text, 160) as head from documents where id in ({listed})")
    by_id = {row["id"]: row["head"] for row in heads}
    return {
        bound: [row | {"head": by_id[row["id"]]} for row in documents]
        for bound, documents in found.items()
    }
