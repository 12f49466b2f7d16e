"""Percentiles by edges that were fitted once: a score's place among those of a named corpus.

The edges of a language are the 0th to 100th percentile of a score there. Applied unchanged to a
later crawl they say where it stands in the old one, and `psi` and `ks` how far it has moved. A
threshold on the percentile then keeps its meaning, which one on "the best 10 % of this crawl" has
not: Nemotron-CC and CCI 4.0 fit their 20 buckets once, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.floating]

SHARES = np.linspace(0, 1, 101)
ANY = "*"  # of a language without edges of its own: those of all documents
MIN_DOCUMENTS = 200  # of a language, or a percentile is no better than half a percent
PSI_SHIFTED = 0.25  # the usual alarm for a population stability index; .1 is "look at it"
PSI_BINS = 10


def fit(scores: Values, languages: Sequence[str]) -> dict[str, list[float]]:
    """Edges of each language with at least MIN_DOCUMENTS, and of all together.

    Raises:
        ValueError: no scores.
    """
    if not len(scores):
        raise ValueError("edges of no documents; name a corpus or predicate that has some")
    named = np.array(languages, dtype=object)
    found = {ANY: scores}
    for language in sorted(set(languages)):
        of_it = scores[named == language]
        if len(of_it) >= MIN_DOCUMENTS:
            found[language] = of_it
    return {name: np.quantile(of, SHARES).round(6).tolist() for name, of in found.items()}


def percentiles(
    scores: Values, languages: npt.NDArray[np.object_], edges: Mapping[str, Sequence[float]]
) -> npt.NDArray[np.float32]:
    """Share of the named corpus, of the same language, that scored at most as much: 0 to 1."""
    found = np.empty(len(scores), np.float32)
    own = np.array([lang if lang in edges else ANY for lang in languages], dtype=object)
    for name in set(own.tolist()):
        rows = own == name
        found[rows] = np.interp(scores[rows], edges[name], SHARES)
    return found


def psi(shares: Values) -> float:
    """Population stability index of percentiles, which are even where nothing has moved: the sum
    of (p - 1/10) ln(p / (1/10)) over tenths. 0 is none; an empty tenth counts as half a document.
    """
    counts = np.histogram(shares, PSI_BINS, (0, 1))[0]
    observed = np.maximum(counts, 0.5) / len(shares)
    return float(((observed - 1 / PSI_BINS) * np.log(observed * PSI_BINS)).sum())


def ks(shares: Values) -> float:
    """Kolmogorov-Smirnov: the largest distance of the percentiles' distribution from the even."""
    ordered = np.sort(shares)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


def psi_noise(documents: int) -> float:
    """What `psi` is by chance when nothing has moved: its 99th percentile. With n documents,
    n * psi is about chi-square with bins - 1 = 9 degrees of freedom, whose 99 % is 21.7.
    """
    return 21.67 / documents
