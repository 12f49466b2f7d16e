"""All that `assay dedup audit` finds out, at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.auditing import losses, neighbours, verdict
from pipeline.auditing.neighbours import ANY, Compared, Draws, Sampled, edges, of_bands
from pipeline.auditing.verdict import Band, Rate, Stored
from pipeline.corpus import CorpusError, manifest
from pipeline.dedup_settings import Near
from pipeline.seeing.asking import Row

MOST_STORED = 1_000  # pairs that are compared again


@dataclass(frozen=True)
class Shown:
    """A pair to look at."""

    what: str
    jaccard: float
    a: Row  # content_hash, id, source, lang, text
    b: Row

    @property
    def title(self) -> str:
        ids = " | ".join(f"{row['id'][:12]} {row['source']} {row['lang']}" for row in self.sides)
        return f"{self.what}, Jaccard {self.jaccard:.3f}: {ids}"

    @property
    def sides(self) -> tuple[Row, Row]:
        return self.a, self.b


@dataclass(frozen=True)
class Audit:
    name: str
    near: Near
    sampled: int
    compared: Compared
    bands: list[Band]
    recall: dict[str, Rate]
    proposals: Rate
    precision: dict[str, Rate]
    wrong: list[Stored]  # stored, and not as similar as that
    losses: list[Row]
    warnings: list[str]
    pairs: list[Shown]


def audit(
    root: Path, *, documents: int, seconds: float, max_loss: float, shown: int, seed: int
) -> Audit:
    """Audit the corpus at `root`.

    Raises:
        CorpusError: it has no document.
    """
    found = manifest(root)
    near = Near(**found["settings"]["near"])
    chosen = neighbours.sample(root, near, documents, seed)
    if not len(chosen.contents):
        raise CorpusError(f"{root}: no document, so there is nothing to audit")
    compared = neighbours.compare(root, near, chosen, seconds, seed)
    verdict.mark_known(root, chosen, compared.draws)
    stored = verdict.stored_pairs(root, near, MOST_STORED, seed)
    lost = losses.losses(root)
    return Audit(
        name=found["name"],
        near=near,
        sampled=len(chosen.contents),
        compared=compared,
        bands=verdict.by_band(near, compared.draws),
        recall=verdict.recall(near, chosen, compared.draws),
        proposals=verdict.proposals(near, compared.draws),
        precision=verdict.precision(near, stored),
        wrong=[pair for pair in stored if not pair.reaches(near.threshold)],
        losses=lost,
        warnings=losses.warnings(lost, max_loss),
        pairs=_pairs(root, near, chosen, compared.draws, shown),
    )


def _pairs(root: Path, near: Near, chosen: Sampled, draws: Draws, num: int) -> list[Shown]:
    """Of each band `num` pairs by lot, and as many that the corpus should know and does not."""
    borders = edges(near.threshold)
    first = borders.index(near.threshold)
    pairs, proposed = of_bands(draws, first, len(borders)), of_bands(draws, ANY, ANY + 1)
    kinds: list[tuple[str, Draws]] = [("missed", pairs[~pairs["known"]])]
    for band in reversed(range(len(borders))):
        mine = of_bands(draws, band, band + 1)
        if band >= first:
            kinds.append(("a pair", mine[mine["known"]]))
        else:
            kinds.append(("near miss, both stay", mine))
    kinds.append(("proposed and refused", proposed[proposed["jaccard"] < borders[0]]))
    picked = [(what, mine[np.argsort(mine["lot"])][:num]) for what, mine in kinds]
    names = chosen.contents.to_pylist()
    named = [
        (what, draw["jaccard"], names[draw["text"]].hex(), draw["other"].ljust(16, b"\0").hex())
        for what, mine in picked
        for draw in mine
    ]
    known = verdict.texts(root, [name for pair in named for name in pair[2:]])
    return [Shown(what, float(jaccard), known[a], known[b]) for what, jaccard, a, b in named]
