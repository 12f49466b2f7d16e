"""`assay mix`: the plan before anything runs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from mixtures import shares_shown
from mixtures.packed import parts_of, read_packed
from mixtures.plan import Plan, PlannedSource, plan_selection
from mixtures.published import publish
from mixtures.seen import seen_before
from mixtures.select import Selection, select
from mixtures.spec import load_mixture
from pipeline.amounts import counted, parse_amount
from pipeline.config import ConfigError

SHOWN_UNCLAIMED = 12  # rows of source and language that no source wants; --json has all
EXAMPLE = """examples:
  assay mix mixture.yaml --tokens 2M --dry-run
  assay mix mixture.yaml --tokens 2B --publish s3://bucket/plan
"""


SAID = {"contained": "contained in what it has", "semantic": "like it in meaning"}


def mix(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay mix",
        description="Show what a mixture gives: documents, tokens, epochs, shares; then pack it.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("mixture", type=Path, help="mixture.yaml")
    parser.add_argument(
        "--tokens",
        help="of the run: 500k, 2M, 1.5B; may be left out where the last phase has `until`",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--show", action="store_true", help="the mixture with all that it extends written out"
    )
    how.add_argument("--dry-run", action="store_true", help="plan only, pack nothing")
    how.add_argument(
        "--verify", action="store_true", help="read all packed windows and compare their hashes"
    )
    parser.add_argument(
        "--publish",
        metavar="PLACE",
        help="upload plan, windows and held-out text: a folder, s3://, gs:// ...; a run.yaml reads "
        "them by `mixture: PLACE`",
    )
    parser.add_argument("--json", action="store_true", help="the plan as JSON")
    options = parser.parse_args(argv)
    if options.publish is not None and (options.dry_run or options.json):
        parser.error("--publish packs and uploads: leave out --dry-run and --json")
    mixture = load_mixture(options.mixture)
    if options.show:
        keys = mixture.model_dump(mode="json", by_alias=True, exclude_unset=True)
        print(yaml.safe_dump(keys, sort_keys=False, allow_unicode=True), end="")
        return 0
    until = mixture.phases[-1].until if mixture.phases else None
    tokens = until if options.tokens is None else parse_amount(options.tokens)
    if tokens is None:
        raise ConfigError("--tokens is missing: how long the run is, for instance --tokens 2M")
    selection = select(mixture)
    plan = plan_selection(mixture, selection, tokens, write=not options.dry_run)
    if options.verify:
        for source in plan.sources:
            read_packed(Path(source.folder), hashes=True)
    if options.json:
        print(json.dumps(plan.to_dict() | {"selection": selection.counted()}, indent=1))
        return 0
    print("\n".join(shown(plan, selection)))
    if mixture.not_in and mixture.unique in ("contained", "semantic"):
        print(f"`not_in` was asked for near copies alone, not for what is {SAID[mixture.unique]}")
    for line in _seen_before(plan) if len(plan.phases) > 1 and not options.dry_run else ():
        print(line)
    done = "packed, and as written:" if options.verify else "packed:"
    print("nothing packed (--dry-run)" if options.dry_run else done)
    for source in plan.sources:
        print(f"  {source.name}: {source.folder}{_some(source, options.dry_run)}")
    if options.publish is not None:
        for line in publish(plan, options.publish, mixture.corpora.values()):
            print(line)
    return 0


def _seen_before(plan: Plan) -> Iterator[str]:
    documents = {source.name: source.documents for source in plan.sources}
    for name, seen in seen_before(plan).items():
        yield (
            f"{name}, which a later phase begins to read: {seen:,} of its "
            f"{counted(documents[name], 'document')} were read before, by other sources"
        )


def _some(source: PlannedSource, dry_run: bool) -> str:
    have = 0 if dry_run else len(parts_of(Path(source.folder)))
    return "" if have in (0, len(source.windows)) else f" ({have} of {len(source.windows)} parts)"


def shown(plan: Plan, selection: Selection) -> Iterator[str]:
    """The plan as lines for a screen."""
    rows: list[tuple[Any, ...]] = [
        ("source", "documents", "tokens", "bytes", "asked", "gets", "windows", "epochs", "at most")
    ]
    rows += [
        (
            source.name,
            f"{source.documents:,}",
            f"{source.num_tokens:,}",
            f"{source.num_bytes:,}",
            f"{100 * source.requested:.2f} %",
            f"{100 * source.realised:.2f} %",
            f"{source.num_windows:,}",
            f"{source.epochs:.2f}",
            f"{source.max_epochs:g}",
        )
        for source in plan.sources
    ]
    yield from table(rows)
    yield ""
    periods = " and ".join(f"{period.period:,}" for period in plan.schedule.periods)
    yield (
        f"{plan.tokens:,} tokens = {counted(plan.num_windows, 'window')} of "
        f"{plan.sequence_length:,}; shares are of tokens, exact to one window at every point of a "
        f"{'stretch, by periods' if len(plan.schedule.periods) > 1 else 'period'} of {periods}"
    )
    yield ""
    yield from table(list(shares_shown.shares(plan)))
    yield from shares_shown.notes(plan)
    yield ""
    if len(plan.phases) > 1:
        yield from table(list(_phases(plan)))
        yield ""
    yield f"plan {plan.fingerprint}"
    yield ""
    yield from _lost(plan)
    yield ""
    yield from table(
        [
            ("removed from", "selected", "copies", "near duplicates", "left"),
            *(
                (c.name, f"{c.claimed:,}", f"{c.copies:,}", f"{c.near:,}", f"{c.documents:,}")
                for c in selection.counts
            ),
        ]
    )
    for count in selection.counts:
        if count.indexed:
            yield (
                f"removed from {count.name} as copies of what `not_in` has: "
                f"{counted(count.indexed, 'document')}"
            )
        if count.contained:
            yield (
                f"removed from {count.name} since a longer document that stays holds them: "
                f"{counted(count.contained, 'document')}"
            )
        if count.semantic:
            yield (
                f"removed from {count.name} for what they mean: "
                f"{counted(count.semantic, 'document')}"
            )
        if count.times > count.documents:
            yield (
                f"repeated in {count.name}: {counted(count.documents, 'document')} stand "
                f"{count.times:,} times"
            )
    yield from shares_shown.caps(selection)
    if any(source.changes.edited or source.changes.emptied for source in plan.sources):
        yield from _edited(plan)
    yield f"held out, though selected: {counted(selection.heldout, 'document')}"
    yield from shares_shown.overlaps(selection)
    if not selection.unclaimed:
        yield "every other document is claimed by a source"
        return
    yield ""
    most = sorted(selection.unclaimed, key=lambda row: -row.num_bytes)
    yield from table(
        [
            ("no source wants", "source", "language", "documents", "bytes"),
            *(
                (u.corpus, u.source, u.language or "-", f"{u.documents:,}", f"{u.num_bytes:,}")
                for u in most[:SHOWN_UNCLAIMED]
            ),
        ]
    )
    if rest := most[SHOWN_UNCLAIMED:]:
        documents = sum(row.documents for row in rest)
        yield f"and {counted(documents, 'document')} of {len(rest)} more (all with --json)"


def _phases(plan: Plan) -> Iterator[tuple[str, ...]]:
    """A row for each source of each phase that reads it."""
    yield "phase", "windows", "until token", "source", "asked", "gets", "tokens", "epochs"
    begin, seen = 0, plan.schedule.windows_until(0)
    for number, phase in enumerate(plan.phases, 1):
        until = plan.schedule.windows_until(phase.end)
        columns = zip(plan.sources, phase.requested, seen.tolist(), until.tolist(), strict=True)
        for source, asked, before, after in columns:
            if not asked:
                continue
            yield (
                str(number),
                f"{begin:,} to {phase.end - 1:,}",
                f"{phase.end * plan.sequence_length:,}",
                source.name,
                f"{100 * asked:.2f} %",
                f"{100 * (after - before) / (phase.end - begin):.2f} %",
                f"{(after - before) * plan.sequence_length:,}",
                f"{before / source.epoch_windows:.2f} to {after / source.epoch_windows:.2f}",
            )
        begin, seen = phase.end, until


def _lost(plan: Plan) -> Iterator[str]:
    """What packing costs; docs/packing.md explains the columns."""
    rows: list[tuple[str, ...]] = [
        ("packed", "left over", "padding", "documents cut", "of these short", "without beginning")
    ]
    for source in plan.sources:
        loss, tokens = source.loss, source.packed_tokens
        places = tokens + loss.padding
        rows.append(
            (
                source.name,
                f"{source.num_tokens - tokens:,}",
                f"{100 * loss.padding / places if places else 0:.2f} %",
                f"{loss.cut:,}",
                f"{loss.cut_short:,}",
                f"{100 * loss.headless / tokens if tokens else 0:.2f} %",
            )
        )
    yield from table(rows)


def _edited(plan: Plan) -> Iterator[str]:
    changes = {source.name: source.changes for source in plan.sources}
    yield ""
    yield from table(
        [
            ("edited in", "documents", "left empty, so out", "bytes removed", "bytes added"),
            *(
                (
                    name,
                    *(f"{num:,}" for num in (c.edited, c.emptied, c.removed_bytes, c.added_bytes)),
                )
                for name, c in changes.items()
            ),
        ]
    )
    yield ""


def table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Columns aligned: the first to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join(cells)
