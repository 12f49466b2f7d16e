"""Which cosine is a copy? Pairs of texts by the cosine of their embeddings, for `unique: semantic`.

Every model has a scale of its own: of one unrelated texts have .2, of another .8. So a sample of
texts is held against all others, and of each band of cosines pairs are shown to be read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dedup.semantic import index_of, nearest, unit
from pipeline.embeddings import embeddings, require_faiss
from pipeline.seeing.asking import rows
from pipeline.syntax import text_literal

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.999)
CHARS = 160  # shown of a text


@dataclass(frozen=True)
class Neighbours:
    """Texts of the sample, each with the nearest other text of the corpus; by falling cosine."""

    texts: int  # of the corpus that have an embedding
    cosines: np.ndarray
    contents: list[tuple[str, str]]  # hex


def neighbours(root: Path, group: str, num: int, seed: int) -> Neighbours:
    """Of `num` texts by lot.

    Raises:
        ConfigError: the corpus has no such embeddings.
    """
    require_faiss()
    hashes, values = embeddings(root, group)
    vectors = unit(values)
    chosen = np.random.default_rng(seed).permutation(len(vectors))[:num]
    index = index_of(vectors)
    index.add(vectors)
    cosines, other = _nearest_other(index, vectors, chosen)
    order = np.argsort(-cosines, kind="stable")
    names = [content.hex() for content in hashes.to_pylist()]
    pairs = [(names[chosen[i]], names[other[i]]) for i in order if other[i] >= 0]
    return Neighbours(len(vectors), cosines[order][: len(pairs)], pairs)


def _nearest_other(
    index: object, vectors: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    cosines, found = nearest(index, vectors[chosen], 2)
    self_first = found[:, 0] == chosen
    at = self_first.astype(int)  # of equal vectors another may come first
    each = np.arange(len(chosen))
    return cosines[each, at], found[each, at]


def told(root: Path, found: Neighbours, group: str, shown: int) -> Iterator[str]:
    """Lines for a terminal."""
    num = len(found.cosines)
    yield (
        f"{num:,} of {found.texts:,} texts by lot; a row: how many of them have another text at "
        "that cosine or more\n"
    )
    for threshold in THRESHOLDS:
        share = (found.cosines >= threshold).mean() if num else 0
        yield f"  {threshold:<6g} {share:7.1%}  {'#' * round(50 * share)}".rstrip()
    ends = [*THRESHOLDS, 1.1]
    for low, high in reversed(list(itertools.pairwise(ends))):
        (inside,) = np.nonzero((found.cosines >= low) & (found.cosines < high))
        for at in inside[max(0, len(inside) - shown) :]:  # least similar: what its border lets in
            yield f"\n--- cosine {found.cosines[at]:.3f}"
            yield from _excerpts(root, found.contents[at])
    yield (
        "\nread the pairs from above; the threshold is where they stop to say the same. In "
        f"mixture.yaml:\nunique: semantic\nsemantic: {{threshold: 0.95, group: {group}}}"
    )


def _excerpts(root: Path, contents: tuple[str, str]) -> Iterator[str]:
    wanted = ", ".join(map(text_literal, contents))
    question = (
        f"select content_hash, any_value(source) as source, any_value(left(text, {CHARS})) as text "
        f"from documents where content_hash in ({wanted}) group by 1"
    )
    known = {row["content_hash"]: row for row in rows(root, question)}
    for content in contents:
        if content in known:
            row = known[content]
            yield f"{content[:12]} {row['source']}: {' '.join(row['text'].split())}"
