"""What weights mean: from what a mixture asks for to shares of the tokens of a run.

A weight is a share of tokens, documents or bytes (`weigh_by`), as they stand in a source: left of
its copies, capped, repeated. With `temperature: T` it counts beside the size n of its source:

    share of source i  ~  weight_i * n_i ** (1 / T)

so 1 mixes in proportion to size, as if all sources were one; larger T lift small sources, and
without a temperature sizes do not count (T as in T5, Raffel et al. 2020; mT5 and XLM-R write alpha
for 1 / T).
Shares of documents or bytes become shares of tokens by the tokens that a document or byte has in
its source.

What follows from the length of the run comes last. `epochs: e` takes e times the unique tokens of
its source out of the budget, and the others share what is left. With `short: unimax`, sources that
would be seen more than `max_epochs` times get just that, and the others take over, in proportion,
until nothing is left to hand on: with equal weights this is UniMax (Chung et al. 2023).
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
    return _normalized({name: w * (sizes[name] / largest) ** power for name, w in shares.items()})


def of_tokens(mixture: Mixture, shares: Shares, counts: Mapping[str, SourceCounts]) -> Shares:
    """Shares of `weigh_by` as shares of tokens."""
    if mixture.weigh_by == "tokens":
        return shares
    return _normalized(
        {
            name: share * counts[name].num_tokens / _size(mixture, counts[name])
            for name, share in shares.items()
        }
    )


def of_windows(shares: Shares, filled: Mapping[str, float]) -> Shares:
    """Shares of tokens as shares of windows, which in a source are `filled` with tokens."""
    if all(part == 1 for part in filled.values()):
        return shares
    return _normalized({name: share / filled[name] for name, share in shares.items()})


def back(windows: Shares, filled: Mapping[str, float]) -> Shares:
    """The inverse of `of_windows`."""
    return of_windows(windows, {name: 1 / part for name, part in filled.items()})


def realised(shares: Shares, counts: Mapping[str, SourceCounts]) -> tuple[Shares, Shares]:
    """Shares of tokens as shares of documents and of bytes."""

    def of(unit: str) -> Shares:
        return _normalized(
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


def _normalized(weights: Mapping[str, float]) -> Shares:
    total = sum(weights.values())
    return {name: weight / total if total else 0.0 for name, weight in weights.items()}


# --- the budget -----------------------------------------------------------------------------------


def within(
    mixture: Mixture, shares: Shares, epoch_windows: Mapping[str, float], total: int
) -> tuple[Shares, frozenset[str]]:
    """The shares of windows in a run of `total`, and the sources of which the budget decides.

    They are whole windows, so that a run of up to 65,536, the longest period, has just as many.

    Args:
        epoch_windows: of each source, how many hold as many tokens as it has unique ones.

    Raises:
        ConfigError: `epochs` or `max_epochs` cannot be had with this budget.
    """
    decided = {
        name: round(source.epochs * epoch_windows[name])
        for name, source in mixture.sources.items()
        if source.epochs is not None
    }
    if not decided and mixture.short == "error":
        return shares, frozenset()
    others = {name: share for name, share in shares.items() if name not in decided}
    _require_room(sum(decided.values()), total, len(decided), bool(others), mixture)
    if mixture.short == "unimax" and others:
        limits = {name: mixture.sources[name].max_epochs * epoch_windows[name] for name in others}
        full = _full(others, limits, total - sum(decided.values()))
        decided |= {name: int(limits[name]) for name in full}
        if len(full) == len(others):
            most = sum(decided.values()) * mixture.sequence_length
            raise ConfigError(
                f"all sources together give at most {most:,} tokens in their `max_epochs`, the run "
                f"has {total * mixture.sequence_length:,}; train on less, raise `max_epochs`, or "
                "add data"
            )
        others = {name: share for name, share in others.items() if name not in full}
    windows = decided | _rounded(others, total - sum(decided.values()))
    for name, number in windows.items():
        if not number:
            raise ConfigError(
                f"source {name!r} would have less than one window of this run; give it more, or "
                "leave it out"
            )
    return _normalized({name: windows[name] for name in shares}), frozenset(decided)


def _require_room(needed: int, total: int, num: int, others: bool, mixture: Mixture) -> None:
    """Refuse `epochs` that fill a run, or that alone do not: to `num` windows, by rounding."""
    if (needed < total) if others else (abs(total - needed) <= num):
        return
    length = mixture.sequence_length
    raise ConfigError(
        ("the sources with `epochs` need" if others else "all sources have `epochs`, and need")
        + f" {needed * length:,} tokens, the run has {total * length:,}; "
        + ("train on more, or lower `epochs`" if others else "train on as many as they need")
    )


def _full(shares: Shares, limits: Mapping[str, float], budget: int) -> set[str]:
    """The sources that cannot fill their share of a budget: what they lack, others take over."""
    full: set[str] = set()
    while len(full) < len(shares):
        left = budget - sum(int(limits[name]) for name in full)
        open_shares = _normalized({n: share for n, share in shares.items() if n not in full})
        more = {name for name, share in open_shares.items() if share * left > int(limits[name])}
        if not more:
            break
        full |= more
    return full


def _rounded(shares: Shares, budget: int) -> dict[str, int]:
    """Whole windows of a budget, by largest remainder."""
    windows = {name: share * budget for name, share in _normalized(shares).items()}
    found = {name: int(number) for name, number in windows.items()}
    missing = budget - sum(found.values())
    for name in sorted(found, key=lambda name: found[name] - windows[name])[:missing]:
        found[name] += 1
    return found
