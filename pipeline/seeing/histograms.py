"""How each signal spreads by language and source, and which documents stand next to a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from pipeline.corpus import manifest, part_paths
from pipeline.relations import FLAT_GROUPS, is_number
from pipeline.seeing.asking import Row, rows
from pipeline.syntax import text_literal

BINS = 40
TAIL = 0.002  # of the documents on each side stands in the outermost bins


@dataclass(frozen=True)
class Histogram:
    """Documents of one language in equal bins from `low` to `high`; what lies beyond stands in the
    outermost bins."""

    signal: str
    language: str
    low: float
    high: float
    counts: dict[str, npt.NDArray[np.int64]]  # source -> (BINS,)
    median: dict[str, float]  # source -> median


def numeric_signals(root: Path) -> list[str]:
    """Every measured number, as `documents` names it."""
    found = []
    for group in manifest(root)["signals"]:
        paths = part_paths(root, f"signals/{group}")
        for field in pq.read_schema(paths[0]) if paths else ():
            if is_number(field.type):
                found.append(field.name if group in FLAT_GROUPS else f"{group}.{field.name}")
    return found


def histograms(root: Path, signal: str, languages: list[str]) -> list[Histogram]:
    """One a language in which the signal has values."""
    listed = ", ".join(map(text_literal, languages))
    bounds = rows(
        root,
        f"select lang, quantile_disc({signal}, {TAIL})::double as low, "
        f"quantile_disc({signal}, {1 - TAIL})::double as high from documents "
        f"where {signal} is not null and lang in ({listed}) group by 1",
    )
    found = []
    for language in languages:
        border = next((row for row in bounds if row["lang"] == language), None)
        if border is not None:
            found.append(_histogram(root, signal, language, border["low"], border["high"]))
    return found


def _histogram(root: Path, signal: str, language: str, low: float, high: float) -> Histogram:
    width = (high - low) / BINS or 1.0
    place = f"least(greatest(floor(({signal} - {low!r}) / {width!r}), 0), {BINS - 1})::int"
    of = f"from documents where lang = {text_literal(language)} and {signal} is not null"
    found = rows(root, f"select source, {place} as bin, count(*) as n {of} group by all")
    medians = rows(root, f"select source, median({signal})::double as middle {of} group by all")
    counts = {row["source"]: np.zeros(BINS, np.int64) for row in medians}
    for row in found:
        counts[row["source"]][row["bin"]] = row["n"]
    most = sorted(counts, key=lambda source: (-int(counts[source].sum()), source))
    return Histogram(
        signal,
        language,
        low,
        low + width * BINS,
        {source: counts[source] for source in most},
        {row["source"]: row["middle"] for row in medians},
    )


def nearest(root: Path, signal: str, language: str, threshold: float, many: int = 3) -> list[Row]:
    """Documents closest to a threshold: id, source, value, `head` of the text."""
    found = rows(
        root,
        f"select id, source, {signal}::double as value from documents "
        f"where lang = {text_literal(language)} and {signal} is not null "
        f"order by abs({signal} - {threshold!r}), id limit {2 * many}",
    )
    if not found:
        return []
    ids = ", ".join(text_literal(row["id"]) for row in found)
    heads = rows(root, f"select id, left(text, 160) as head from documents where id in ({ids})")
    by_id = {row["id"]: row["head"] for row in heads}
    return [row | {"head": by_id[row["id"]]} for row in found]
