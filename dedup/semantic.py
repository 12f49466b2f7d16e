"""Texts that mean the same, by the cosine of their embeddings (SemDeDup, Abbas et al. 2023).

SemDeDup looks for pairs inside clusters of k-means and keeps one text of each group that hangs
together. Here, as for near copies, texts are walked in order of preference, and each is held
against those that were *kept* (design, rule 2): no pair is stored, so ten thousand pages of one
template cost as many comparisons, not their square.

Above EXACT texts each is looked for in the PROBES nearest of sqrt(n) cells of k-means, not among
all. faiss does the arithmetic; it comes with the extra `semantic`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

EXACT = 50_000  # texts: so many of 384 numbers take 12 CPU seconds (benchmarks/semantic.py)
PROBES = 16  # of 100,000 planted copies one in 10,000 is missed (the same)
BLOCK = 1_024  # texts that are compared with each other at once
TRAINING = 64  # vectors for each cell that k-means sees; faiss warns below 39
DIGITS = 6  # of a cosine that decide: float32 sums differ from machine to machine behind them

Vectors = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


def unit(vectors: Vectors) -> Vectors:
    """Rows of length 1; a row of zeros stays, and is similar to nothing."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return np.asarray(vectors / np.maximum(lengths, 1e-30)[:, None], np.float32)


def keep_unlike(vectors: Vectors, threshold: float, *, exact: int = EXACT) -> Mask:
    """Mask of the texts that stay: those with no kept one before them at `threshold` or more.

    Args:
        vectors: unit rows [num_texts, dimensions], the most preferred first.
        threshold: cosine from which two texts are copies.
        exact: up to so many texts every kept one is looked at.
    """
    keep = np.zeros(len(vectors), np.bool_)
    index = index_of(vectors, exact)
    for begin in range(0, len(vectors), BLOCK):
        block = vectors[begin : begin + BLOCK]
        free = nearest(index, block, 1)[0][:, 0] < threshold
        among = np.round(block @ block.T, DIGITS) >= threshold
        for row in range(len(block)):
            if free[row]:
                keep[begin + row] = True
                free &= ~among[row]
        index.add(block[keep[begin : begin + BLOCK]])
    return keep


def index_of(vectors: Vectors, exact: int = EXACT) -> Any:
    """An empty index for rows like these: exact for few of them, cells of k-means for many."""
    import faiss  # the extra `semantic`; 0.2 s

    dimensions = vectors.shape[1]
    if len(vectors) <= exact:
        return faiss.IndexFlatIP(dimensions)
    cells = math.isqrt(len(vectors))
    quantizer = faiss.IndexFlatIP(dimensions)
    index = faiss.IndexIVFFlat(quantizer, dimensions, cells, faiss.METRIC_INNER_PRODUCT)
    index.nprobe = PROBES
    seen = np.random.default_rng(0).permutation(len(vectors))[: cells * TRAINING]
    index.train(vectors[seen])
    return index


def nearest(
    index: Any, vectors: Vectors, num: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Cosines of the `num` nearest rows of the index to each of `vectors`, and their numbers; -2
    and -1 where it has no more."""
    cosines, rows = index.search(np.ascontiguousarray(vectors), num)
    return np.where(rows < 0, -2.0, np.round(cosines.astype(np.float64), DIGITS)), rows
