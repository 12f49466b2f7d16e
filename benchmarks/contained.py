"""How well documents inside others are found, on real text, and what it costs.

    PYTHONPATH=. python benchmarks/contained.py CORPUS [...] [--megabytes 30]

Truth is every pair of texts, compared exactly: real ones, and of 1,000 of them a piece that became
a document of its own, with .8 to 1 of its shingles left. Costs are CPU seconds of one core, of the
second of two runs.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from near_copies import HAN, LANGUAGES, LONG, texts

from dedup import containment, sketches
from dedup.contamination import matches
from dedup.postings import build_index
from dedup.shingles import Hashes, Offsets, shingles
from pipeline.seeing.agreement import wilson

PIECES = 1_000
THRESHOLDS = (0.8, 0.9, 1.0)
Pairs = npt.NDArray[np.int64]  # shape (2, pairs): inside, holder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/contained.py")
    parser.add_argument("corpora", type=Path, nargs="+")
    parser.add_argument("--megabytes", type=float, default=8, help="of text a language")
    options = parser.parse_args()
    for language in LANGUAGES:
        real = texts(options.corpora, language, int(options.megabytes * 1e6))
        size = sum(len(text.encode()) for text in real) / 1e6
        print(f"\n{language}: {len(real):,} different texts, {size:.1f} MB")
        short(real)
        hashes, offsets = shingles(pa.array([*real, *pieces(real)]))
        print(
            f"  {'from':<6}{'pairs':>7}{'recall':>9}{'':18}{'compared':>9}{'precision':>11}"
            f"{'texts':>8}{'recall':>9}"
        )
        for threshold in THRESHOLDS:
            true = truth(hashes, offsets, threshold)
            found, compared, seconds = run(hashes, offsets, threshold)
            hits, sizes = len(np.intersect1d(true, found)), np.diff(offsets)
            texts_true, texts_found = (len(_inside(codes, sizes)) for codes in (true, found))
            low, high = wilson(hits, len(true))
            print(
                f"  {threshold:<6}{len(true):>7,}{hits / len(true):>9.4f} ({low:.4f} to {high:.4f})"
                f"{compared:>8,}{hits / len(found):>11.3f}{texts_true:>8,}"
                f"{texts_found / texts_true:>9.4f}",
                flush=True,
            )
        for step, (cost, num) in seconds.items():
            print(f"  {step:<10}{1000 * cost / size:6.2f} ms/MB{num:>14}")
    return 0


def short(real: list[str]) -> None:
    """Of texts by their shingles, how many stand whole in another text."""
    hashes, offsets = shingles(pa.array(real))
    sizes = np.diff(offsets)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    order = np.argsort(hashes, kind="stable")
    keys, docs = hashes[order], owners[order]
    for low, high in ((1, 3), (3, 5), (5, 9), (9, 16), (16, 64), (64, 512)):
        mine = np.flatnonzero((sizes >= low) & (sizes < high))
        inside = num = 0
        for text in mine.tolist():
            sets = [
                set(docs[slice(*np.searchsorted(keys, [h, h + np.uint64(1)]))].tolist())
                for h in hashes[offsets[text] : offsets[text + 1]]
            ]
            others = set.intersection(*sets) - {text}
            longer = sum(sizes[other] > sizes[text] for other in others)
            inside, num = inside + (longer > 0), max(num, longer)
        share = inside / max(1, len(mine))
        print(
            f"  {low:>3} to {high - 1:<4}shingles: {len(mine):>6,} texts, {share:6.2%} stand in a "
            f"longer one, one in {num:,}"
        )


def pieces(real: list[str]) -> list[str]:
    """A third of a long text, of which some units are others of it."""
    pick = random.Random(1)
    long = [text for text in real if len(text) >= 3 * LONG]
    found = []
    for text in pick.sample(long, min(PIECES, len(long))):
        units = list(text) if len(HAN.findall(text)) > len(text) / 4 else text.split(" ")
        begin = pick.randrange(max(1, len(units) - len(units) // 3))
        piece = units[begin : begin + len(units) // 3]
        kept = pick.uniform(0.8, 1.0) ** (1 / 5)  # of units, that so many 5-grams stay
        piece = [unit if pick.random() < kept else pick.choice(units) for unit in piece]
        found.append(
            ("" if isinstance(units[0], str) and len(units) == len(text) else " ").join(piece)
        )
    return found


def truth(hashes: Hashes, offsets: Offsets, threshold: float) -> npt.NDArray[np.int64]:
    """Pairs by exact comparison; near copies of texts too short to be contained are not among
    them."""
    index = build_index(hashes, offsets, threshold)
    left, right, _, share = matches(index, hashes, offsets, threshold, 1.0)
    sizes = np.diff(offsets)
    good = (left < right) & (np.minimum(sizes[left], sizes[right]) >= containment.MIN_SHINGLES)
    good &= share >= np.float32(threshold)
    return _codes(left[good], right[good])


def run(
    hashes: Hashes, offsets: Offsets, threshold: float
) -> tuple[npt.NDArray[np.int64], int, dict[str, tuple[float, str]]]:
    """Pairs as `prepare` finds them, pairs compared, and what each step costs."""
    for _ in range(2):
        costs: dict[str, tuple[float, str]] = {}
        timed = functools.partial(_timed, costs)
        sizes = np.diff(offsets)
        keys, rows = timed("keys", containment.keys_of, hashes, offsets)
        words = containment.make_filter(len(keys))
        timed("filter", containment.mark, keys, words)
        hits, of = timed("hits", containment.hits_of, hashes, offsets, words)
        every, docs = np.concatenate([keys, hits]), np.concatenate([rows, of])
        order = np.argsort(every, kind="stable")
        order = order[sketches.shared(every[order])]
        every, docs, is_key = every[order], docs[order], order < len(keys)
        columns = docs.astype(np.uint64), is_key, sizes[docs].astype(np.uint32)
        found = timed("propose", containment.propose, every, *columns, docs.astype(np.uint64))
        inner = found.inner.astype(np.int64)
        good = containment.chosen(found, containment.num_keys(sizes[inner]), threshold)
        i, j = inner[good], found.outer[good].astype(np.int64)
        shared = timed("compare", containment.num_shared, hashes, offsets, hashes, offsets, i, j)
    costs["keys"] = costs["keys"][0], f"{12 * len(keys):,} bytes"
    costs["hits"] = costs["hits"][0], f"{12 * len(hits):,} bytes"
    verified = shared / sizes[i] >= threshold
    return _codes(i[verified], j[verified]), len(i), costs


def _timed(
    costs: dict[str, tuple[float, str]], step: str, work: Callable[..., Any], *of: Any
) -> Any:
    begin = time.process_time()
    made = work(*of)
    costs[step] = time.process_time() - begin, ""
    return made


def _inside(codes: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The smaller text of each pair, once."""
    left, right = codes >> 32, codes & 0xFFFFFFFF
    return np.unique(np.where(sizes[left] <= sizes[right], left, right))


def _codes(left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.unique(np.minimum(left, right) << 32 | np.maximum(left, right))


if __name__ == "__main__":
    sys.exit(main())
