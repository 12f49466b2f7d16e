"""The report of a study: verdict first, then all that it rests on; Markdown, HTML and verdict.json.

Everything comes from records of the runs, so that a second call writes the same bytes.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.files import read_json, replacing, write_json
from trainer.ablation import charts, evidence, render
from trainer.ablation.render import Section, Table
from trainer.ablation.results import Outcome, Row
from trainer.ablation.study import Study
from trainer.ablation.wording import dominant_set, interval, percent, sentence, signed

MANY_SETS = 10  # of so many without any difference, 4 in 10 studies show one: 1 - 0.95^10


def write_report(study: Study, outcome: Outcome) -> tuple[Path, Path]:
    """Write report.md, report.html and verdict.json into the study's folder; returns the first two.

    Files that would not change keep their bytes.
    """
    report = make_report(study, outcome)
    written = []
    for name, text in (("md", render.markdown(report)), ("html", render.html(report))):
        path = study.folder / f"report.{name}"
        with replacing(path) as temporary:
            temporary.write_text(text, "utf-8")
        written.append(path)
    write_json(study.folder / "verdict.json", verdict(study, outcome))
    return written[0], written[1]


def verdict(study: Study, outcome: Outcome) -> dict[str, Any]:
    """What a machine needs to know."""
    return {
        "question": study.settings.question,
        "baseline": study.baseline,
        "seeds": list(study.settings.seeds),
        "verdicts": outcome.verdicts,
        "sentences": {arm: sentence(study, outcome, arm) for arm in outcome.verdicts},
        "confidence": outcome.confidence,
        "primary": asdict(outcome.primary),
        "languages": [asdict(row) for row in outcome.languages],
        "sets": [asdict(row) for row in outcome.sets],
        "others": [asdict(row) for row in outcome.others],
        "contributions": outcome.contributions,
        "runs": {f"{run.arm}/seed-{run.seed}": run.key for run in study.runs},
    }


def make_report(study: Study, outcome: Outcome) -> render.Report:
    """All sections, in the order in which a reader asks."""
    records = {run.folder: read_json(run.folder / "run.json") for run in study.runs}
    return render.Report(
        study.settings.question,
        tuple(
            (
                outcome.verdicts[arm].split(":")[0],
                f"{sentence(study, outcome, arm)} {dominant_set(outcome, arm)}".strip(),
            )
            for arm in outcome.verdicts
        ),
        (
            _how_sure(study, outcome),
            _by_set(study, outcome),
            evidence.compared(study, records),
            evidence.chosen(study),
            _by_seed(study, outcome),
            evidence.curves(study),
            *evidence.funnels(study),
            evidence.cost(study, records),
            evidence.provenance(study, records),
        ),
    )


def _how_sure(study: Study, outcome: Outcome) -> Section:
    seeds, items = len(study.settings.seeds), outcome.primary.num_items
    shares = study.settings.primary.shares().items()
    mean = ", ".join(f"{name} {percent(share)}" for name, share in shares)
    first = next(iter(outcome.primary.differences.values()))
    noise = ""
    if first.seed_error is not None and first.item_error is not None:
        noise = (
            f" Chance alone moves the difference by about {first.seed_error:.4f} through the "
            f"seeds and {first.item_error:.4f} through the choice of documents."
        )
    rows = [
        charts.Interval(_name(study, row, arm), d.estimate, d.low, d.high, row is outcome.primary)
        for arm in outcome.verdicts
        for row in (outcome.primary, *outcome.sets)
        for d in (row.differences[arm],)
    ]
    return Section(
        "How sure is that",
        text=(
            "A model is scored by bits per byte: how many bits it needs, on average, to write "
            "down one byte of text that no arm trained on. Fewer is better. The deciding number, "
            f"fixed before the runs, is the mean over languages ({mean}). Below: arm minus "
            f"baseline; left of zero the arm is better.",
        ),
        figure=charts.intervals(rows, f"difference from “{study.baseline}” in bits per byte"),
        after=(
            f"The bars are intervals: were the study repeated with other seeds and other held-out "
            f"documents of the same kind, {percent(outcome.confidence)} of them would hold the "
            "true difference. Where a bar includes zero, the arms cannot be told apart.",
            f"Here are {seeds} seeds (initial weights and order of the data) and {items:,} "
            f"documents.{noise} The answer is about models of this size, trained this long, and "
            "about text like the held-out text; larger models were not asked.",
        ),
    )


def _name(study: Study, row: Row, arm: str) -> str:
    name = "all, the deciding number" if row.name == "primary" else row.name
    return f"{arm}: {name}" if len(study.settings.arms) > 2 else name


def _by_set(study: Study, outcome: Outcome) -> Section:
    rows: list[tuple[str, ...]] = []
    strong: set[int] = set()
    for arm in outcome.verdicts:
        for row in (outcome.primary, *outcome.languages, *outcome.sets, *outcome.others):
            d = row.differences[arm]
            if row is outcome.primary:
                strong.add(len(rows))
            if row in outcome.languages:
                name = f"language {row.name}"
            else:
                name = _name(study, row, arm)
            rows.append(
                (
                    name,
                    outcome.verdicts[arm].split(":")[0] if row is outcome.primary else d.verdict,
                    signed(d.estimate),
                    interval(d),
                    _part(study, outcome, row, arm),
                    f"{_mean(row.bits[study.baseline]):.4f}",
                    f"{_mean(row.bits[arm]):.4f}",
                    f"{row.num_items:,}",
                )
            )
    arms = list(outcome.verdicts)
    return Section(
        "The difference on each held-out set",
        text=(
            "Bits per byte, mean over seeds. A byte is not the same amount of text in every "
            "language (a Chinese character has three), so figures compare within a language. "
            "Column “adds”: the part of the deciding difference that comes from this text; a text "
            "that stands in two sets counts in the first."
            + " Sets in other languages stand last and decide nothing."
            * bool(outcome.others),
            *_many_sets(outcome),
        ),
        table=Table(
            (
                "held-out text",
                "verdict",
                "difference",
                f"{percent(outcome.confidence)} interval",
                "adds",
                study.baseline,
                arms[0] if len(arms) == 1 else "arm",
                "documents",
            ),
            tuple(rows),
            frozenset({2, 3, 4, 5, 6, 7}),
            frozenset(strong),
        ),
    )


def _many_sets(outcome: Outcome) -> list[str]:
    num_sets = len(outcome.sets) + len(outcome.others)
    if num_sets < MANY_SETS:
        return []
    return [
        f"{num_sets} sets are compared one by one; by chance about 1 in "
        f"{1 / (1 - outcome.confidence):.0f} would show a difference where there is none: only "
        "the deciding number gives a verdict."
    ]


def _part(study: Study, outcome: Outcome, row: Row, arm: str) -> str:
    """What a row adds to the deciding number: its share of the bytes of its language counts."""
    if row is outcome.primary:
        return signed(row.differences[arm].estimate)
    if row in outcome.languages:
        share = study.settings.primary.shares()[row.name]
        return signed(row.differences[arm].estimate * share)
    part = outcome.contributions[arm].get(row.name)
    return "–" if part is None else signed(part)


def _mean(values: tuple[float, ...]) -> float:
    return math.fsum(values) / len(values)


def _by_seed(study: Study, outcome: Outcome) -> Section:
    bits = outcome.primary.bits
    rows = tuple(
        (
            str(seed),
            *(f"{bits[arm][n]:.4f}" for arm in bits),
            *(signed(d.per_seed[n]) for d in outcome.primary.differences.values()),
        )
        for n, seed in enumerate(study.settings.seeds)
    )
    minus = [f"{arm} − {study.baseline}" for arm in outcome.verdicts]
    headers = ("seed", *bits, *minus)
    return Section(
        "The deciding number, seed by seed",
        table=Table(headers, rows, frozenset(range(1, len(headers)))),
    )
