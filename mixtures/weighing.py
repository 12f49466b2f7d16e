"""What weights mean: from what a mixture asks for to shares of the tokens of a run.

A weight is a share of tokens, documents or bytes (`weigh_by`), as they stand in a source: left of
its copies, capped, repeated. With `temperature: T` it counts beside the size n of its source:

    share of source i  ~  weight_i * n_i ** (1 / T)

so 1 mixes in proportion to size, as if all sources were one; larger T lift small sources, and
without a temperature sizes do not count (T as in T5, Raffel et al. 2020; mT5 and XLM-R write alpha
for 1 / T).
Shares of documents or bytes become shares of tokens by the tokens that a document or byte has in
its source.

What follows from the length of the run comes last: budget.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from mixtures.phases import Phase, shares_in
from mixtures.select import SourceCounts
from mixtures.spec import Mixture
from pipeline.config import ConfigError

Shares = dict[str, float]  # source -> its share; they sum to 1


def asked(mixture: Mixture, phase: Phase, counts: Mapping[str, SourceCounts]) -> Shares:
    """What weights and temperature ask for, in the unit of `weigh_by`.

    Raises:
        ConfigError: a source has nothing of that unit.
    """
    shares = shares_in(phase, mixture.weights())
    if mixture.temperature is None:
        return shares
    sizes = {name: _size(mixture, counts[name]) for name in shares}
    largest, power = max(sizes.values()), 1 / mixture.temperature
    return normalized({name: w * (sizes[name] / largest) ** power for name, w in shares.items()})


def of_tokens(mixture: Mixture, shares: Shares, counts: Mapping[str, SourceCounts]) -> Shares:
    """Shares of `weigh_by` as shares of tokens."""
    if mixture.weigh_by == "tokens":
        return shares
    return normalized(
        {
            name: share * counts[name].num_tokens / _size(mixture, counts[name])
            for name, share in shares.items()
        }
    )


def of_windows(shares: Shares, filled: Mapping[str, float]) -> Shares:
    """Shares of tokens as shares of windows, which in a source are `filled` with tokens."""
    if all(part == 1 for part in filled.values()):
        return shares
    return normalized({name: share / filled[name] for name, share in shares.items()})


def back(windows: Shares, filled: Mapping[str, float]) -> Shares:
    """The inverse of `of_windows`."""
    return of_windows(windows, {name: 1 / part for name, part in filled.items()})


def realised(shares: Shares, counts: Mapping[str, SourceCounts]) -> tuple[Shares, Shares]:
    """Shares of tokens as shares of documents and of bytes."""

    def of(unit: str) -> Shares:
        return normalized(
            {
                name: share * getattr(counts[name], unit) / counts[name].num_tokens
                for name, share in shares.items()
            }
        )

    return of("times"), of("num_bytes")


def _size(mixture: Mixture, count: SourceCounts) -> int:
    """Of a source, in the unit of `weigh_by`."""
    size = {"tokens": count.num_tokens, "documents": count.times, "bytes": count.num_bytes}
    if not size[mixture.weigh_by]:
        raise ConfigError(
            f"source {count.name!r} has no {mixture.weigh_by} to be weighed by, only empty "
            "documents; leave it out"
        )
    return size[mixture.weigh_by]


def normalized(weights: Mapping[str, float]) -> Shares:
    """Weights that sum to 1, or all 0."""
    total = sum(weights.values())
    return {name: weight / total if total else 0.0 for name, weight in weights.items()}
