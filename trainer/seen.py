"""`assay windows`: which documents a training step sees, and which steps see a document.

The order of a run is a function of its plan, so nothing was recorded: both are worked out, for
steps that were made and for those to come. What `on_damage: skip` made blank was recorded, and is
told apart: no step was trained on it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from mixtures.batch import Skipped
from mixtures.commands import table
from mixtures.loader import Loader
from mixtures.pieces import Piece, pieces, positions_of
from mixtures.plan import Plan, plan_from_dict
from mixtures.plan_tokenizer import tokenizer_file
from mixtures.published import open_plan
from pipeline.amounts import counted, parse_amount
from pipeline.config import ConfigError, check
from pipeline.corpus import CorpusError
from pipeline.files import SEAL, read_json
from pipeline.objects import is_url
from pipeline.seeing.asking import rows
from pipeline.syntax import SqlError, text_literal
from trainer import skipped
from trainer.batches import Step, step_of, steps
from trainer.data import cache_of
from trainer.settings import RunSettings

EXAMPLE = """examples:
  assay windows runs/run --step 1200                      the documents of a step
  assay windows runs/run --step 1200 --text 80            with what stands in the window of each
  assay windows runs/run --document 0123456789abcdef0123456789abcdef
  assay mix mixture.yaml --tokens 2B --json > plan.json
  assay windows plan.json --batch-tokens 512k --step 1 --json

A document is named by its id, as `assay sql` and `assay inspect` show it. Where it stands in a
window is told in tokens, from 0; the last token of a window is the first of the next one. Of a
published plan addresses are known where its corpus is."""


@dataclass(frozen=True)
class Read:
    """A plan, and how a run reads it."""

    plan: Plan
    steps: Sequence[Step]
    ranks: int
    loader: Loader
    skipped: dict[int, Skipped]  # by position: windows that were blank, so far


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay windows",
        description="List the documents of a training step, or the steps of a document.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "plan", metavar="PLAN_OR_RUN", help="folder of a run, plan.json, or where one was published"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--step", type=int, help="from 1")
    what.add_argument("--document", metavar="ID", help="32 hex digits")
    parser.add_argument("--batch-tokens", help="of a step: for a plan without a run")
    parser.add_argument("--ranks", type=int, help="default: those of the run")
    parser.add_argument("--text", type=int, default=0, metavar="N", help="show N characters")
    parser.add_argument("--json", action="store_true", help="rows as JSON, with all columns")
    options = parser.parse_args(argv)
    read = _read(options.plan, options.batch_tokens, options.ranks)
    plan, blank = read.plan, read.skipped
    with closing(read.loader) as loader:
        if options.step is not None:
            first, count = _windows_of(read.steps, options.step)
            found = list(pieces(loader, first, count))
            blank = {one.position: one for one in loader.batch(first, count).skipped} | {
                at: blank[at] for at in range(first, first + count) if at in blank
            }
        else:
            found = _holding(loader, options.document)
    told = [_told(read, piece) for piece in found]
    _add_origins(plan, told)
    if options.text:
        _add_text(plan, told, found, options.text)
    if options.json:
        print(json.dumps(told, indent=1, ensure_ascii=False))
        return 0
    print("\n".join(_shown(told, options.document, options.text)))
    for line in _blank(read, blank, told, options.document):
        print(line)
    return 0


def _read(name: str, batch_tokens: str | None, ranks: int | None) -> Read:
    if is_url(name):
        return _without_a_run(open_plan(name), name, batch_tokens, ranks)
    place = Path(name)
    file = place / "plan.json" if place.is_dir() else place
    if not file.exists():
        raise ConfigError(
            f"{file} does not exist; name the folder of a run that `assay train` began, or what "
            "`assay mix --json` printed"
        )
    record = file.with_name("run.json")
    if not record.exists():
        return _without_a_run(_plan_in(file), str(file), batch_tokens, ranks)
    plan, known = plan_from_dict(read_json(file)), read_json(record)
    run = check(known["settings"], RunSettings, str(record))
    asked = run.batch_tokens if batch_tokens is None else parse_amount(batch_tokens)
    return Read(
        plan,
        steps(asked, plan),
        ranks or int(known["processes"]),
        Loader(plan, cache_of(run), run.on_damage),
        {one.position: one for one in skipped.read(record.parent)},
    )


def _without_a_run(plan: Plan, where: str, batch_tokens: str | None, ranks: int | None) -> Read:
    if batch_tokens is None:
        raise ConfigError(
            f"{where} is a plan without a run: say how large a step is, as in `--batch-tokens 512k`"
        )
    return Read(plan, steps(parse_amount(batch_tokens), plan), ranks or 1, Loader(plan), {})


def _plan_in(file: Path) -> Plan:
    """What `assay mix --json` printed, or `--publish` wrote."""
    found = read_json(file)
    if (file.parent / "packed").is_dir() and SEAL in found:
        return open_plan(file.parent)
    found.pop("selection", None)  # which `mix --json` adds
    return plan_from_dict(found)


def _windows_of(planned: Sequence[Step], step: int) -> tuple[int, int]:
    last = len(planned)
    if not 1 <= step <= last:
        raise ConfigError(f"step {step}: the run has {counted(last, 'step')}, from 1 to {last:,}")
    found = planned[step - 1]
    return found.position, found.windows


def _holding(loader: Loader, document: str) -> list[Piece]:
    """Every place of a document in the run."""
    try:
        name = bytes.fromhex(document)
    except ValueError:
        name = b""
    if len(name) != 16:
        raise ConfigError(
            f'--document {document}: not 32 hex digits; `assay sql CORPUS "select id from '
            "documents where url = '...'\"` has the id of a document"
        )
    positions = sorted(set(positions_of(loader, name.hex())))
    return [p for at in positions for p in pieces(loader, at, 1) if p.id == name.hex()]


def _told(read: Read, piece: Piece) -> dict[str, Any]:
    step = step_of(read.steps, piece.position)
    inside = piece.position - step.position
    columns = {name: value for name, value in vars(piece).items() if name != "tokens"}
    rank = ((inside + 1) * read.ranks - 1) // step.windows  # the inverse of trainer.parallel.share
    skipped = piece.position in read.skipped
    return {"step": step.number, "rank": rank, **columns, "skipped": skipped}


def _add_origins(plan: Plan, told: Sequence[dict[str, Any]]) -> None:
    """Where documents come from, as far as their corpus still says so."""
    for source in plan.sources:
        mine = [row for row in told if row["source"] == source.name]
        names = ", ".join(sorted({text_literal(row["id"]) for row in mine}))
        found = {}
        if names and not is_url(source.folder):
            question = f"select id, source, source_id, url from documents where id in ({names})"
            try:
                asked = rows(Path(source.folder).parent.parent, question)
                found = {row["id"]: row for row in asked}
            except (CorpusError, SqlError, OSError):
                pass  # it moved, or is being made anew: windows are there, and say enough
        for row in mine:
            known = found.get(row["id"], {})
            row |= {"corpus": source.corpus, "corpus_source": known.get("source"),
                    "source_id": known.get("source_id"), "url": known.get("url")}  # fmt: skip


def _add_text(
    plan: Plan, told: Sequence[dict[str, Any]], found: Sequence[Piece], most: int
) -> None:
    """What the model sees: the ids of the window, as text."""
    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file(plan)))
    for row, piece in zip(told, found, strict=True):
        ids = piece.tokens[: 4 * most + 8].astype(np.int64).tolist()  # a character is few tokens
        row["text"] = tokenizer.decode(ids)[:most]


def _shown(told: Sequence[dict[str, Any]], document: str | None, text: int) -> Iterable[str]:
    if not told:
        yield f"document {document} stands in no window of this run"
        return
    steps, windows = ({row[name] for row in told} for name in ("step", "position"))
    documents = {row["id"] for row in told}
    yield (
        f"{counted(len(steps), 'step')}, {counted(len(windows), 'window')}, "
        f"{counted(len(documents), 'document')}"
    )
    head = ("step", "window", "rank", "epoch", "tokens", "document", "source", "url")
    lines = [head] + [
        (
            str(row["step"]),
            f"{row['position']:,}",
            str(row["rank"]),
            str(row["epoch"]),
            f"{row['begin']} to {row['end'] - 1}",
            row["id"]
            + (" (forgotten)" if row["forgotten"] else "")
            + (" (skipped)" if row["skipped"] else ""),
            row["source"] + (f" ({row['corpus_source']})" if row["corpus_source"] else ""),
            row["url"] or row["source_id"] or "-",
        )
        for row in told
    ]
    for number, line in enumerate(table(lines)):
        yield line.rstrip()
        if text and number:
            yield f"    {' '.join(told[number - 1]['text'].split())}"


def _blank(
    read: Read, blank: dict[int, Skipped], told: Sequence[dict[str, Any]], document: str | None
) -> Iterable[str]:
    """What `on_damage: skip` made blank: among what was asked for; of a document, also windows of
    which it can no longer be read whether they held it."""
    listed = {row["position"] for row in told if row["skipped"]}
    if document is None:
        for at, one in sorted(blank.items()):
            yield f"window {at:,} is blank, no loss of it counts: {one.why}"
        return
    if listed:
        yield f"{counted(len(listed), 'window')} of these were blank, and no loss of them counted"
    unread = [at for at in blank if at not in listed and not any(pieces(read.loader, at, 1))]
    if unread:
        yield (
            f"{counted(len(unread), 'window')} more were blank, of parts that cannot be read: they "
            "may hold it too, and no loss of them counted"
        )
