"""The shares of a plan, its caps and overlaps as lines for a screen."""

from __future__ import annotations

from collections.abc import Iterator

from mixtures.plan import Plan
from mixtures.select import Selection
from pipeline.amounts import counted

SHOWN = 3  # values of a cap; --json has 5


def shares(plan: Plan) -> Iterator[tuple[str, ...]]:
    """Rows: what weights ask for, what a run gets in each unit, how far off, where it ends."""
    unit = plan.weigh_by
    yield (
        "shares",
        f"asked, of {unit}",
        "tokens asked",
        "tokens",
        "documents",
        "bytes",
        "off by",
        "ends at token",
    )
    for source in plan.sources:
        off = abs(source.realised / source.requested - 1) if source.requested else 0.0
        yield (
            source.name,
            _percent(source.asked),
            _percent(source.requested_tokens),
            _percent(source.realised_tokens),
            _percent(source.realised_documents),
            _percent(source.realised_bytes),
            f"{100 * off:.2g} %",
            "never" if source.ends_at is None else f"{source.ends_at:,}",
        )


def notes(plan: Plan) -> Iterator[str]:
    """What a reader of the table may wonder at."""
    for source in plan.sources:
        if source.by_budget:
            yield (
                f"{source.name}: {source.epochs:.4g} epochs of this run are its share, whatever "
                "its weight; of another length it has another"
            )
        if source.unique_tokens < source.num_tokens:
            yield (
                f"{source.name}: an epoch is its {source.unique_tokens:,} unique tokens, which "
                f"stand as {source.num_tokens:,}"
            )


def caps(selection: Selection) -> Iterator[str]:
    """What caps left out."""
    for count in selection.counts:
        found = count.capped
        if not found.documents:
            if found.without:
                yield (
                    f"nothing removed from {count.name} by its cap; "
                    f"{counted(found.without, 'document')} without a value stay"
                )
            continue
        room = "" if found.limit is None else f", each has room for {found.limit:,} tokens"
        most = ", ".join(
            f"{cut.value} ({cut.left_documents:,} of {cut.documents:,} stay)"
            for cut in found.most[:SHOWN]
        )
        yield (
            f"removed from {count.name} by its cap: {counted(found.documents, 'document')}, "
            f"{found.num_tokens:,} tokens, of {found.cut:,} of {counted(found.values, 'value')}"
            f"{room}; most of {most}; {found.without:,} without a value stay"
        )


def overlaps(selection: Selection) -> Iterator[str]:
    """What sources select together."""
    shared = counted(selection.overlap, "document")
    yield f"selected by several sources: {shared}, given to the first"
    for row in selection.overlaps:
        yield (
            f"  by {' and '.join(row.sources)}: {counted(row.documents, 'document')}, "
            f"{row.num_bytes:,} bytes"
        )


def _percent(share: float) -> str:
    """Two digits behind the point, or as many as a small share needs."""
    return f"{100 * share:.2f} %" if share >= 0.001 or not share else f"{100 * share:.2g} %"
