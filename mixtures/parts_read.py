"""The packed parts that a run reads, of those that a source has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixtures.order import epoch_seed, parts_until

if TYPE_CHECKING:
    from mixtures.packed import Packed
    from mixtures.plan import Plan
    from mixtures.spec import Mixture


def parts_per_group(mixture: Mixture, packed: Packed) -> int:
    """Whose windows are shuffled together: whole parts, at least one."""
    num = len(packed.windows)
    if mixture.shuffle is None:
        return num
    return min(num, max(1, mixture.shuffle // packed.packing.part_tokens))


def parts_read(plan: Plan) -> list[list[int]]:
    """Of each source the packed parts that the run reads."""
    needed = plan.schedule.windows_until(plan.num_windows).tolist()
    return [
        parts_until(
            count,
            source.windows,
            source.parts_per_group,
            epoch_seed(plan.seed, source.selection, source.order, 0),
        )
        for source, count in zip(plan.sources, needed, strict=True)
    ]
