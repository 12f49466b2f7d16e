"""How far a mixture is off its weights: ours beside the ways that others order sources.

    python benchmarks/mixture_error.py [--smoke]

Two figures of each: the largest distance of any source, at any prefix of the run, from its share,
in windows; and the largest relative error of a source's share of tokens in the whole run. The
second also where a weight counts documents, as of `interleave_datasets(probabilities=)`, and
documents of the sources have 300 and 3,000 tokens. The other orders are short definitions, after:

drawn      each window of a source by probability: HF datasets, litdata, Megatron-energon
blocks     a shuffled block of 1,024 windows with the quotas of each: levanter `mixture.py`
greedy     the source that lags most: Megatron-LM `build_blending_indices`
golden     the fractional part of n * phi, cut by shares: a low-discrepancy sequence
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mixtures.schedule import choose_quotas, make_period

WINDOWS = 65_536
MIXTURES = {
    "1 : 1": [1, 1],
    "1 : 999": [1, 999],
    ".001, .2, .799": [0.001, 0.2, 0.799],
    "pi : e : sqrt 2": [np.pi, np.e, np.sqrt(2)],
    "7 sources": [0.4, 0.25, 0.15, 0.1, 0.06, 0.03, 0.01],
}
TOKENS = (300, 3_000)  # of a document of the sources in turn


def ours(shares: np.ndarray, num: int) -> np.ndarray:
    period = make_period({str(at): float(share) for at, share in enumerate(shares)})
    return period.locate(np.arange(num))[0]


def drawn(shares: np.ndarray, num: int) -> np.ndarray:
    return np.random.default_rng(0).choice(len(shares), num, p=shares)


def blocks(shares: np.ndarray, num: int) -> np.ndarray:
    rng, size = np.random.default_rng(0), 1_024
    counts = np.floor(shares * size).astype(int)
    counts[np.argsort(counts - shares * size, kind="stable")[: size - counts.sum()]] += 1
    block = np.repeat(np.arange(len(shares)), counts)
    return np.concatenate([rng.permutation(block) for _ in range(-(-num // size))])[:num]


def greedy(shares: np.ndarray, num: int) -> np.ndarray:
    had, found = np.zeros(len(shares)), np.empty(num, np.int64)
    for at in range(num):
        found[at] = int((shares * max(at, 1) - had).argmax())
        had[found[at]] += 1
    return found


def golden(shares: np.ndarray, num: int) -> np.ndarray:
    points = np.arange(1, num + 1) * ((np.sqrt(5) - 1) / 2) % 1
    return np.searchsorted(np.cumsum(shares)[:-1], points, side="right")


ORDERS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "ours": ours,
    "greedy": greedy,
    "golden": golden,
    "blocks": blocks,
    "drawn": drawn,
}


def figures(sources: np.ndarray, shares: np.ndarray) -> tuple[float, float]:
    """Windows off at the worst prefix; relative error of the worst share at the end."""
    had = np.cumsum(sources[:, None] == np.arange(len(shares)), axis=0)
    owed = np.arange(1, len(sources) + 1)[:, None] * shares
    return float(np.abs(had - owed).max()), float(np.abs(had[-1] / owed[-1] - 1).max())


def by_documents(shares: np.ndarray) -> float:
    """Relative error of a share of tokens where the weight is the probability of a document."""
    tokens = shares * np.resize(TOKENS, len(shares))
    return float(np.abs(tokens / tokens.sum() / shares - 1).max())


def main(size: int = 0, folder: Path | None = None) -> None:
    """Print the table; `size` and `folder` are those of benchmarks/run.py, and not used."""
    num = WINDOWS
    print(f"\nmixture error: windows off at the worst of {num:,} prefixes; worst share at the end")
    print(f"| mixture | period | {' | '.join(ORDERS)} | drawn by documents |")
    print(f"| --- | --- | {' | '.join('---' for _ in ORDERS)} | --- |")
    for name, weights in MIXTURES.items():
        shares = np.array(weights) / np.sum(weights)
        cells = []
        for order in ORDERS.values():
            windows, share = figures(order(shares, num), shares)
            cells.append(f"{windows:.2f}; {100 * share:.2g} %")
        period = int(choose_quotas(shares).sum())
        cells.append(f"{100 * by_documents(shares):.0f} %")
        print(f"| {name} | {period:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a shorter run")
    if parser.parse_args().smoke:
        WINDOWS = 2_048
    main()
