"""What a checkpoint keeps of a loader: a position, and which data it is a position in.

The fingerprint is over contents (plan.py); `data` says the same in parts, so that a state which
meets other data can name what differs.
"""

from __future__ import annotations

from typing import Any

from mixtures.continuing import why_not
from mixtures.plan import Plan


class StateError(ValueError):
    """A loader state that belongs to other data."""


def of(plan: Plan, position: int) -> dict[str, Any]:
    """The state before window `position`, as plain data for JSON."""
    return {"position": position, "fingerprint": plan.fingerprint, "data": _data(plan)}


def position_in(
    plan: Plan, state: dict[str, Any], before: Plan | None = None, allow_other_data: bool = False
) -> int:
    """The position of a state in a plan; see Loader.resume.

    Raises:
        StateError: it is a state of other data; names what differs.
    """
    position, saved = int(state["position"]), state["fingerprint"]
    if saved == plan.fingerprint or allow_other_data:
        return position
    if before is not None and before.fingerprint == saved:
        why = why_not(before, plan, position)
        if why is not None:
            raise StateError(f"the saved loader state belongs to plan {saved}: {why}")
        return position
    raise StateError(
        f"the saved loader state belongs to plan {saved}, this run has plan {plan.fingerprint}: "
        f"{'; '.join(_differences(state.get('data'), _data(plan)))}. Its position means nothing "
        "here: restore the mixture of that run, start a new run, or go on at that position in the "
        "new data with `allow_other_data`"
    )


def _data(plan: Plan) -> dict[str, Any]:
    periods, begins = plan.schedule.periods, plan.schedule.begins.tolist()
    return {
        "sequence_length": plan.sequence_length,
        "seed": plan.seed,
        "tokenizer": plan.tokenizer,
        "sources": {
            source.name: {
                "selection": source.selection,
                "windows": source.num_windows,
                "parts_per_group": source.parts_per_group,
                "order": source.order,
                "share": ", ".join(
                    f"{period.quotas[at]} of {period.period}" + (f" from {begin}" if begin else "")
                    for period, begin in zip(periods, begins, strict=True)
                ),
            }
            for at, source in enumerate(plan.sources)
        },
    }


def _differences(before: dict[str, Any] | None, now: dict[str, Any]) -> list[str]:
    if before is None:  # saved by an earlier version
        return ["sources, selection, weights, seed, tokenizer or length differ"]
    told = [
        f"{key} was {before[key]}, is {now[key]}"
        for key in ("sequence_length", "seed", "tokenizer")
        if before[key] != now[key]
    ]
    old, new = before["sources"], now["sources"]
    told += [f"source {name!r} is gone" for name in old if name not in new]
    told += [f"source {name!r} is new" for name in new if name not in old]
    for name in (name for name in new if name in old):
        if old[name]["selection"] != new[name]["selection"]:
            told.append(
                f"source {name!r} holds other documents, or they are packed otherwise: "
                f"{old[name]['selection']} ({old[name]['windows']:,} windows), now "
                f"{new[name]['selection']} ({new[name]['windows']:,})"
            )
        told += [
            f"source {name!r}: {key} was {old[name].get(key, '')}, is {new[name][key]}"
            for key in ("parts_per_group", "share", "order")
            if old[name].get(key, "") != new[name][key]
        ]
    return told or ["the order of its sources"]
