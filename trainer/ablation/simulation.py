"""Simulated studies: how often does `statistics` speak when it should be silent?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.ablation.statistics import Floats, difference

WEIGHTS = {"zh": 0.5, "en": 0.5}


@dataclass(frozen=True)
class Noise:
    """Standard deviations of x[s, i] in bits per byte, and how unequal documents are."""

    seed: float
    item: float
    error: float
    log_bytes: float = 1.0  # sigma of log-normal document sizes; 1 is about what web pages show


# Who makes the noise: the two extremes, and a study in which both matter alike (with 100 items, an
# item's 0.1 is 0.01 in the mean, as much as the seed's). Figures are those of 1-20 M models.
REGIMES: dict[str, Noise] = {
    "seeds": Noise(seed=0.01, item=0.01, error=0.01),
    "items": Noise(seed=0.0005, item=0.1, error=0.02),
    "both": Noise(seed=0.01, item=0.1, error=0.05),
    "error only": Noise(seed=0.0, item=0.0, error=0.05),
    "equal sizes": Noise(seed=0.01, item=0.1, error=0.05, log_bytes=0.0),
}


@dataclass(frozen=True)
class Study:
    """One simulated comparison; `nats` is arm minus baseline."""

    nats_SI: Floats
    num_bytes: Floats
    languages: list[str]


def draw(
    rng: np.random.Generator, noise: Noise, num_seeds: int, num_items: int, effect: float = 0.0
) -> Study:
    """Differences x[s, i] = effect + seed + item + error, half of the items in each language."""
    num_bytes = np.round(rng.lognormal(7, noise.log_bytes, num_items)) + 1
    x_SI = (
        effect
        + noise.seed * rng.standard_normal((num_seeds, 1))
        + noise.item * rng.standard_normal((1, num_items))
        + noise.error * rng.standard_normal((num_seeds, num_items))
    )
    languages = ["zh", "en"] * (num_items // 2)
    return Study(x_SI * num_bytes * np.log(2), num_bytes, languages)


def verdict_counts(
    noise: Noise,
    num_seeds: int,
    *,
    num_items: int = 100,
    num_studies: int = 400,
    effect: float = 0.0,
    seed: int = 1,
) -> dict[str, int]:
    """Verdicts over simulated studies, and how many intervals cover the true effect."""
    rng = np.random.default_rng(seed)
    counts = {"better": 0, "worse": 0, "undecided": 0, "covered": 0}
    for _ in range(num_studies):
        study = draw(rng, noise, num_seeds, num_items, effect)
        zero = np.zeros_like(study.nats_SI)
        d = difference(study.nats_SI, zero, study.num_bytes, study.languages, WEIGHTS)
        counts[d.verdict] += 1
        assert d.low is not None
        assert d.high is not None
        counts["covered"] += d.low <= effect <= d.high
    return counts
