"""Plans of sources that are numbers alone, for what depends on a plan and on nothing packed."""

from __future__ import annotations

from typing import Any

from mixtures.plan import Plan, PlannedSource
from mixtures.planned_phases import PlannedPhase

LENGTH = 8
END = 400  # windows of the run


def source(name: str, selection: str = "", requested: float = 1.0) -> PlannedSource:
    numbers: dict[str, Any] = dict.fromkeys(
        ("claimed", "copies", "near", "documents", "num_tokens", "num_bytes", "epochs"), 1
    )
    return PlannedSource(
        name=name,
        corpus="c",
        folder="f",
        selection=selection or name * 32,
        windows=(30, 12),
        parts_per_group=2,
        requested=requested,
        realised=requested,
        max_epochs=99.0,
        **numbers,
    )


def plan(sources: list[PlannedSource], phases: list[PlannedPhase], tokens: int) -> Plan:
    return Plan(
        tokens=tokens,
        sequence_length=LENGTH,
        seed=5,
        tokenizer="t" * 16,
        tokenizer_file="",
        vocab_size=9,
        bos_id=None,
        eos_id=0,
        heldout=0,
        sources=tuple(sources),
        phases=tuple(phases),
    )


def plan_of(names: str, *phases: tuple[int, list[int]]) -> Plan:
    """Of (end, weights) of each phase; the last one ends with the run."""
    ends = [min(end, END) for end, _ in phases[:-1]] + [END]
    shares = [tuple(w / sum(weights) for w in weights) for _, weights in phases]
    return plan([*map(source, names)], [*map(PlannedPhase, ends, shares)], END * LENGTH)
