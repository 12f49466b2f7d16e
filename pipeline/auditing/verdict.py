"""What draws say of deduplication: recall and precision, by band, language and source.

Recall: of pairs that truly reach the threshold, the share that the corpus knows. Precision: of
pairs that it stores, the share that reach the threshold when their texts are read again and
compared by the plain definition, without any of the code that found them. Intervals are Wilson's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dedup.curve import collision_probability
from dedup.folding import fold
from pipeline import schema
from pipeline.auditing.neighbours import ANY, SLACK, Draws, Sampled, edges, of_bands
from pipeline.corpus import part_paths
from pipeline.dedup_settings import Near
from pipeline.seeing.agreement import wilson
from pipeline.seeing.asking import Row, rows
from pipeline.syntax import text_literal

PLAIN_BYTES = 5_000_000  # of text that is compared by the plain definition: about 10 CPU seconds


@dataclass(frozen=True)
class Rate:
    """A share of draws."""

    hits: int
    draws: int

    @classmethod
    def of(cls, hits: npt.NDArray[np.bool_]) -> Rate:
        return cls(int(hits.sum()), len(hits))

    def __str__(self) -> str:
        low, high = wilson(self.hits, self.draws)
        shown = f"{self.hits:,} of {self.draws:,} ({low:.1%} to {high:.1%})"
        return shown if self.draws else "no pair"

    def as_json(self) -> dict[str, float]:
        low, high = wilson(self.hits, self.draws)
        return {"hits": self.hits, "draws": self.draws, "low": low, "high": high}


@dataclass(frozen=True)
class Band:
    """Pairs of one band of similarity, as they are and as the corpus has them."""

    low: float
    high: float  # 1 is in the highest band
    proposed: Rate  # by LSH, ...
    curve: float  # ... and what its formula says of these pairs
    known: Rate


class Stored(NamedTuple):
    """A stored pair, read again."""

    a: Row  # content_hash, id, source, lang, text
    b: Row
    stored: float  # Jaccard as the corpus has it
    jaccard: float  # by the plain definition

    def reaches(self, threshold: float) -> bool:
        return self.jaccard >= threshold - SLACK


def mark_known(root: Path, chosen: Sampled, draws: Draws) -> None:
    """Set `known`: the pair is stored, or both stand in one of those large clusters that are
    verified when a mixture selects."""
    ours = chosen.contents.take(pa.array(draws["text"]))
    others = pa.py_buffer(draws["other"].tobytes())
    theirs = pa.Array.from_buffers(schema.HASH, len(draws), [None, others])
    stored: set[tuple[bytes, bytes]] = set()
    for path in part_paths(root, "pairs"):
        for batch in pq.ParquetFile(path).iter_batches(columns=["a", "b"]):
            mine = pc.or_(*(pc.is_in(batch[side], chosen.contents) for side in ("a", "b")))
            found = batch.filter(mine)
            stored |= set(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True))
    wanted = pa.concat_arrays([ours, theirs]).unique()
    clusters: dict[bytes, bytes] = {}
    for path in part_paths(root, "clusters"):
        table = pq.read_table(path)
        table = table.filter(pc.and_(table["large"], pc.is_in(table["content_hash"], wanted)))
        names = (table[name].to_pylist() for name in ("content_hash", "cluster"))
        clusters |= dict(zip(*names, strict=True))
    pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
    draws["known"] = [
        (min(a, b), max(a, b)) in stored or (a in clusters and clusters[a] == clusters.get(b))
        for a, b in pairs
    ]


def by_band(near: Near, draws: Draws) -> list[Band]:
    found = []
    for number, (low, high) in enumerate(itertools.pairwise([*edges(near.threshold), 1.0])):
        mine = of_bands(draws, number, number + 1)
        chances = [
            collision_probability(similar, near.bands, near.rows)
            for similar in mine["jaccard"].tolist()
        ]
        curve = sum(chances) / len(chances) if chances else math.nan
        proposed, known = (Rate.of(mine[name]) for name in ("proposed", "known"))
        found.append(Band(low, high, proposed, curve, known))
    return found


def recall(near: Near, chosen: Sampled, draws: Draws) -> dict[str, Rate]:
    """Of pairs that reach the threshold, one a text: the share that the corpus knows; of all, and
    by language and source of the text."""
    borders = edges(near.threshold)
    mine = of_bands(draws, borders.index(near.threshold), len(borders))
    return _grouped(mine["known"], chosen.languages[mine["text"]], chosen.sources[mine["text"]])


def proposals(near: Near, draws: Draws) -> Rate:
    """Of pairs that LSH proposes, one a text: the share that reaches the threshold. Where nothing
    is verified the others are removed too."""
    return Rate.of(of_bands(draws, ANY, ANY + 1)["jaccard"] >= near.threshold - SLACK)


def stored_pairs(root: Path, near: Near, num: int, seed: int) -> list[Stored]:
    """At most `num` stored pairs by lot, their texts compared again; fewer if they are long."""
    lot = f"order by md5(a || b || '{seed}') limit {num}"
    drawn = rows(root, f"select a, b, jaccard from pairs {lot}")
    known = texts(root, [row[side] for row in drawn for side in ("a", "b")])
    found: list[Stored] = []
    left = PLAIN_BYTES
    for row in drawn:
        a, b = known[row["a"]], known[row["b"]]
        left -= len(a["text"].encode()) + len(b["text"].encode())
        if left < 0 and found:
            break
        found.append(Stored(a, b, row["jaccard"], plain_jaccard(a["text"], b["text"], near.ngram)))
    return found


def precision(near: Near, found: list[Stored]) -> dict[str, Rate]:
    """The share of stored pairs that reach the threshold, of all and by language and source."""
    right = np.array([pair.reaches(near.threshold) for pair in found], np.bool_)
    sides = (np.array([pair.a[name] for pair in found], np.str_) for name in ("lang", "source"))
    return _grouped(right, *sides)


def texts(root: Path, contents: Iterable[str]) -> dict[str, Row]:
    """A document of each content (hex): content_hash, id, source, lang, text."""
    listed = ", ".join(map(text_literal, dict.fromkeys(contents)))
    if not listed:
        return {}
    found = rows(
        root,
        "select content_hash, id, source, coalesce(lang, '') as lang, text from documents "
        f"where content_hash in ({listed}) order by id desc",
    )
    return {row["content_hash"]: row for row in found}


def plain_jaccard(a: str, b: str, ngram: int) -> float:
    """By the definition: sets of `ngram` consecutive words of the folded view; 0 without words."""
    left, right = (_plain_shingles(text, ngram) for text in (a, b))
    return len(left & right) / max(1, len(left | right))


def _plain_shingles(text: str, ngram: int) -> set[tuple[str, ...]]:
    words = fold(text).split()
    size = min(ngram, len(words))
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)} if words else set()


def _grouped(
    hits: npt.NDArray[np.bool_], languages: npt.NDArray[np.str_], sources: npt.NDArray[np.str_]
) -> dict[str, Rate]:
    found = {"all": Rate.of(hits)}
    for what, names in (("language", languages), ("source", sources)):
        found |= {f"{what} {name}": Rate.of(hits[names == name]) for name in np.unique(names)}
    return found
