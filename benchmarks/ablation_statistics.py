"""A/A studies by simulation: false verdicts of the t interval and of a bootstrap, and coverage.

    python benchmarks/ablation_statistics.py [--studies 2000]

Both arms are the same, so every verdict is false; the interval promises 5 %. The last column: how
often a planted difference of .04 bits per byte is found.
"""

from __future__ import annotations

import argparse

import numpy as np

from trainer.ablation.simulation import REGIMES, WEIGHTS, Noise, draw, verdict_counts
from trainer.ablation.statistics import shares


def bootstrap_false(noise: Noise, num_seeds: int, num_studies: int, resamples: int = 500) -> float:
    """Share of false verdicts of a percentile bootstrap over seeds and items."""
    rng = np.random.default_rng(1)
    false = 0
    for _ in range(num_studies):
        study = draw(rng, noise, num_seeds, 100)
        p = shares(study.num_bytes, study.languages, WEIGHTS)
        x = study.nats_SI / study.num_bytes / np.log(2)
        times_I = rng.multinomial(100, np.full(100, 0.01), size=resamples)
        times_S = rng.multinomial(num_seeds, np.full(num_seeds, 1 / num_seeds), size=resamples)
        draws = ((times_S @ x / num_seeds) * times_I * p).sum(1) / (times_I * p).sum(1)
        low, high = np.quantile(draws, [0.025, 0.975])
        false += low > 0 or high < 0
    return false / num_studies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    num_studies = parser.parse_args().studies
    print(f"{num_studies} A/A studies per line, 100 held-out items; false verdicts promised: 5 %")
    print(f"{'noise':12} {'seeds':>5} {'t interval':>11} {'bootstrap':>10} {'found .04':>10}")
    for name, noise in REGIMES.items():
        for num_seeds in (3, 5, 10):
            counts = verdict_counts(noise, num_seeds, num_studies=num_studies)
            false = (counts["better"] + counts["worse"]) / num_studies
            boot = bootstrap_false(noise, num_seeds, min(num_studies, 500))
            planted = verdict_counts(noise, num_seeds, num_studies=num_studies // 4, effect=0.04)
            found = planted["worse"] / (num_studies // 4)
            print(f"{name:12} {num_seeds:5} {false:11.1%} {boot:10.1%} {found:10.1%}")


if __name__ == "__main__":
    main()
