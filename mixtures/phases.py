"""Phases: other weights for stretches of a run, as for annealing or a curriculum.

A phase ends with the window that holds its last token: `until` / `sequence_length`, rounded up, as
the run does. In each, every prefix is within one window of its shares; so after k phases a source
is within k windows of what was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from pipeline.amounts import Amount
from pipeline.config import ConfigError, Settings, suggestion


class Phase(Settings):
    """The weights of one stretch of the run; sources go on where the phase before left them."""

    # Tokens of the run at which it ends, up to a whole window; without: the end of the run, for the
    # last phase only
    until: Amount | None = Field(None, ge=1)
    # Of every source, 0: absent, as shares of tokens that need not sum to 1; none: their `weight`
    weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None


def fit(phases: Sequence[Phase], own: Mapping[str, float], sequence_length: int) -> None:
    """Do nothing when phases can be had, whatever the run.

    Args:
        own: `weight` of each source.

    Raises:
        ValueError: names the phase and the remedy.
    """
    before = 0
    for number, phase in enumerate(phases, 1):
        for name in phase.weights or ():
            if name not in own:
                raise ValueError(f"phase {number}: no source {name!r}; {suggestion(name, own)}")
        for name in own:
            if phase.weights is not None and name not in phase.weights:
                raise ValueError(
                    f"phase {number}: `weights` has none for source {name!r}; give it one, or 0 to "
                    "leave it out of this phase"
                )
        if not any((own if phase.weights is None else phase.weights).values()):
            raise ValueError(f"phase {number}: all weights are 0; give a source more")
        if phase.until is None:
            if number < len(phases):
                raise ValueError(
                    f"phase {number}: key `until` is missing: only the last phase may go on to the "
                    "end of the run"
                )
            continue
        if phase.until <= before:
            raise ValueError(
                f"phase {number} ends at {phase.until:,} tokens, where phase {number - 1} ends at "
                f"{before:,}; order the phases, each `until` counted from the begin of the run"
            )
        if num_windows(phase.until, sequence_length) == num_windows(before, sequence_length):
            raise ValueError(
                f"phase {number} is shorter than a window of {sequence_length:,} tokens: it ends "
                f"at {phase.until:,}, the one before at {before:,}; raise its `until`"
            )
        before = phase.until
    for name, weight in own.items():
        if not any(shares_in(phase, own)[name] for phase in phases or [Phase()]):
            raise ValueError(
                f"source {name!r} has weight {weight:g}"
                + (" and none in any phase" if phases else "")
                + "; raise its `weight`, or leave the source out"
            )


def shares_in(phase: Phase, own: Mapping[str, float]) -> dict[str, float]:
    """Share of each source in a phase, in the order of `own`; `own` as it is where it holds."""
    if phase.weights is None:
        return dict(own)
    total = sum(phase.weights.values())
    return {name: phase.weights[name] / total for name in own}


@dataclass(frozen=True)
class Generation:
    """The sources that one phase is the first to read, by their numbers in the mixture."""

    new: tuple[int, ...]
    beside: tuple[int, ...]  # those of earlier phases that some phase reads together with these


def generations(phases: Sequence[Phase], own: Mapping[str, float]) -> list[Generation]:
    """The sources in the order in which a run begins to read them.

    What a source selects must not depend on those that come in later, or a run could not go on
    when it gets another one. So each generation takes what is left beside the earlier ones.
    """
    weights = [list(shares_in(phase, own).values()) for phase in phases] or [list(own.values())]
    begun: list[int] = []
    found = []
    for shares in weights:
        new = [at for at, share in enumerate(shares) if share and at not in begun]
        together = [w for w in weights if any(w[at] for at in new)]
        beside = [at for at in begun if any(w[at] for w in together)]
        found += [Generation(tuple(new), tuple(beside))] if new else []
        begun += new
    return found


def num_windows(tokens: int, sequence_length: int) -> int:
    """Windows that hold so many tokens; the last one may hold more."""
    return -(-tokens // sequence_length)


def ends(phases: Sequence[Phase], tokens: int, sequence_length: int) -> list[int]:
    """The window after the last of each phase, in a run of so many tokens.

    Raises:
        ConfigError: the run does not end where the last phase does.
    """
    until = phases[-1].until
    if until is not None and num_windows(until, sequence_length) != num_windows(
        tokens, sequence_length
    ):
        raise ConfigError(
            f"the last phase ends at {until:,} tokens, the run at {tokens:,}; make them equal, or "
            "leave out `until` of the last phase: it then goes on to the end"
        )
    last = num_windows(tokens, sequence_length)
    found = [num_windows(phase.until, sequence_length) for phase in phases[:-1] if phase.until]
    for number, end in enumerate(found, 1):
        if end >= last:
            raise ConfigError(
                f"the run ends at {tokens:,} tokens, before phase {number + 1} begins (`until: "
                f"{phases[number - 1].until}` of phase {number}); train on more tokens, or leave "
                f"out what comes after phase {number}"
            )
    return [*found, last]
