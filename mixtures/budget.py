"""What follows from the length of the run: exact epochs, UniMax, whole windows.

`epochs: e` takes e times the unique tokens of its source out of the budget, and the others share
what is left. With `short: unimax`, sources that would be seen more than `max_epochs` times get just
that, and the others take over, in proportion, until nothing is left to hand on: with equal weights
this is UniMax (Chung et al. 2023).

Both count over the whole run. In one with phases weights say where: the windows of a source with
`epochs` are spread over the phases as its weights would spread them, all by one factor; those of a
source that is short are what it would have had in each phase, likewise; and in each phase the
others share what is left of it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from mixtures.spec import Mixture
from mixtures.weighing import Shares, normalized
from pipeline.config import ConfigError

Key = TypeVar("Key", bound=Hashable)
Spread = list[float]  # windows of a source in each phase


def within(
    mixture: Mixture,
    shares: Sequence[Shares],
    epoch_windows: Mapping[str, float],
    lengths: Sequence[int],
) -> tuple[list[dict[str, int]], frozenset[str]]:
    """The windows of each source in each phase, and the sources of which the budget decides.

    Args:
        shares: of windows, in each phase.
        epoch_windows: of each source, how many hold as many tokens as it has unique ones.
        lengths: windows of each phase.

    Returns:
        No windows, and no names, where weights alone decide.

    Raises:
        ConfigError: `epochs` or `max_epochs` cannot be had with this budget.
    """
    totals = {
        name: round(source.epochs * epoch_windows[name])
        for name, source in mixture.sources.items()
        if source.epochs is not None
    }
    if not totals and mixture.short == "error":
        return [], frozenset()
    decided = {
        name: _scaled(_asked(name, shares, lengths), number) for name, number in totals.items()
    }
    _require_room(decided, shares, lengths, mixture)
    if mixture.short == "unimax":
        limits = {
            name: source.max_epochs * epoch_windows[name]
            for name, source in mixture.sources.items()
            if name not in decided
        }
        full = _full(decided, shares, lengths, limits)
        decided |= full
        totals |= {name: int(limits[name]) for name in full}
        _require_others(decided, shares, lengths, totals, mixture)
    whole = {name: _rounded(dict(enumerate(decided[name])), totals[name]) for name in decided}
    found = []
    for at, (asked, length) in enumerate(zip(shares, lengths, strict=True)):
        here = {name: by_phase[at] for name, by_phase in whole.items()}
        others = {name: share for name, share in asked.items() if name not in decided}
        here |= _rounded(normalized(others), max(0, length - sum(here.values())))
        found.append({name: here[name] for name in asked})
    for name in mixture.sources:
        if not any(here[name] for here in found):
            raise ConfigError(
                f"source {name!r} would have less than one window of this run; give it more, or "
                "leave it out"
            )
    return found, frozenset(decided)


def _asked(name: str, shares: Sequence[Shares], lengths: Sequence[int]) -> Spread:
    return [asked[name] * length for asked, length in zip(shares, lengths, strict=True)]


def _scaled(spread: Spread, total: float) -> Spread:
    whole = sum(spread)
    return [total * windows / whole for windows in spread]


def _left(
    decided: Mapping[str, Spread], shares: Sequence[Shares], lengths: Sequence[int]
) -> tuple[list[Shares], list[float]]:
    """In each phase the shares of the sources that are not decided, and the windows for them."""
    others = [
        normalized({name: share for name, share in asked.items() if name not in decided})
        for asked in shares
    ]
    rooms = [
        length - sum(spread[at] for spread in decided.values()) for at, length in enumerate(lengths)
    ]
    return others, rooms


def _require_room(
    decided: Mapping[str, Spread],
    shares: Sequence[Shares],
    lengths: Sequence[int],
    mixture: Mixture,
) -> None:
    """Refuse `epochs` that fill a run or phase, or that alone do not: to a window each, by
    rounding."""
    others, rooms = _left(decided, shares, lengths)
    for at, (room, length) in enumerate(zip(rooms, lengths, strict=True)):
        is_shared = any(others[at].values())
        if room > 0.5 if is_shared else abs(room) <= len(decided):
            continue
        tokens, has = (round(n) * mixture.sequence_length for n in (length - room, length))
        phase = f"phase {at + 1}" if len(lengths) > 1 else ""
        longer = "make it longer, give them weight in other phases" if phase else "train on more"
        raise ConfigError(
            (f"{phase}: " if phase else "")
            + ("the sources with `epochs`" if is_shared else "all sources have `epochs`, and")
            + f" need {tokens:,} tokens, {'it' if phase else 'the run'} has {has:,}; "
            + (
                f"{longer}, or lower `epochs`"
                if is_shared
                else "give another source weight in it"
                if phase
                else "train on as many as they need"
            )
        )


def _full(
    decided: Mapping[str, Spread],
    shares: Sequence[Shares],
    lengths: Sequence[int],
    limits: Mapping[str, float],
) -> dict[str, Spread]:
    """The sources that cannot fill their share of a budget, and what they have of each phase: what
    they lack, others take over."""
    full: dict[str, Spread] = {}
    while True:
        others, rooms = _left({**decided, **full}, shares, lengths)
        more = {}
        for name in limits.keys() - full.keys():
            spread = [asked[name] * room for asked, room in zip(others, rooms, strict=True)]
            most = limits[name] if math.isinf(limits[name]) else int(limits[name])
            if sum(spread) > most:
                more[name] = _scaled(spread, most)
        if not more:
            return full
        full |= more


def _require_others(
    decided: Mapping[str, Spread],
    shares: Sequence[Shares],
    lengths: Sequence[int],
    totals: Mapping[str, int],
    mixture: Mixture,
) -> None:
    """Refuse a phase in which every source has had its `max_epochs` before it is full."""
    others, rooms = _left(decided, shares, lengths)
    for at, room in enumerate(rooms):
        if any(others[at].values()) or room < 0.5:
            continue
        tokens = round(room) * mixture.sequence_length
        if len(lengths) > 1:
            raise ConfigError(
                f"phase {at + 1}: its sources have had their `max_epochs` or `epochs` {tokens:,} "
                "tokens before it ends; give another source weight in it, make it shorter, raise "
                "`max_epochs`, or add data"
            )
        most = sum(totals.values()) * mixture.sequence_length
        raise ConfigError(
            f"all sources together give at most {most:,} tokens in their `max_epochs`, the run "
            f"has {lengths[0] * mixture.sequence_length:,}; train on less, raise `max_epochs`, or "
            "add data"
        )


def _rounded(shares: Mapping[Key, float], budget: int) -> dict[Key, int]:
    """Whole windows of a budget, by largest remainder."""
    total = sum(shares.values())
    windows = {key: share / total * budget if total else 0.0 for key, share in shares.items()}
    found = {key: int(number) for key, number in windows.items()}
    missing = budget - sum(found.values()) if total else 0
    for key in sorted(found, key=lambda key: found[key] - windows[key])[:missing]:
        found[key] += 1
    return found
