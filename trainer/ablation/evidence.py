"""Sections of a report that come from the records of its runs and corpora."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.files import read_json
from pipeline.finished import standing
from pipeline.report import funnel
from trainer.ablation import charts
from trainer.ablation.render import Section, Table
from trainer.ablation.study import Study, changes

KEY_DIGITS = 12  # of the hash of a run
CURVE_POINTS = 160  # a chart shows no more

Records = dict[Path, dict[str, Any]]  # folder of a run -> its run.json


def compared(study: Study, records: Records) -> Section:
    rows = []
    for arm, settings in study.settings.arms.items():
        run = study.runs_of(arm)[0]
        sources = read_json(run.folder / "plan.json")["sources"]
        differs = ";\n".join(f"{key}: {_value(value)}" for key, value in changes(settings).items())
        rows.append(
            (
                arm,
                differs or ("the base" if arm == study.baseline else "nothing"),
                f"{sum(s['documents'] for s in sources):,}",
                f"{sum(s.get('unique_tokens') or s['num_tokens'] for s in sources):,}",
                f"{run.run['tokens']:,}",
            )
        )
    record = records[study.runs[0].folder]
    return Section(
        "What was compared",
        text=(
            f"Arms differ in what the table says and in nothing else. Each ran with seeds "
            f"{', '.join(map(str, study.settings.seeds))}; a model has "
            f"{record['parameters']:,} parameters.",
        ),
        table=Table(
            ("arm", "differs in", "documents", "unique tokens", "trained tokens"),
            tuple(rows),
            frozenset({2, 3, 4}),
        ),
    )


def chosen(study: Study) -> Section:
    """From the documents that each source asks for to those that an arm trains on."""
    rows, heldout, seen = [], [], []
    plans = {
        arm: read_json(study.runs_of(arm)[0].folder / "plan.json") for arm in study.settings.arms
    }
    sources = [source for plan in plans.values() for source in plan["sources"]]
    kinds = ("indexed", "contained", "semantic", "capped")
    rare = [key for key in kinds if any(s.get(key) for s in sources)]
    removed = ("copies", "near", *rare)
    for arm, plan in plans.items():
        heldout.append(f"{arm} {plan['heldout']:,}")
        for source in plan["sources"]:
            counts = (source.get(key, 0) for key in ("claimed", *removed, "documents"))
            share = source["epochs"]
            seen.append(share)
            rows.append(
                (
                    arm,
                    source["name"],
                    *(f"{count:,}" for count in counts),
                    f"{source.get('unique_tokens') or source['num_tokens']:,}",
                    f"{share:.1%}" if share < 1 else f"{share:.3g} times",
                )
            )
    return Section(
        "What each arm trains on",
        text=(
            "Selected: what “where” asks for. Copies and near duplicates of a text that stays, and "
            "what “unique”, “not_in” and “cap” take besides, are removed when the arm asks for it. "
            "Seen: "
            "how much of its unique tokens a run goes through. Held-out text, and all copies of "
            "it, is never trained on and not in these counts; “where” asked for so many held-out "
            "documents: "
            f"{', '.join(heldout)}.",
        ),
        table=Table(
            ("arm", "source", "selected", *removed, "documents", "unique tokens", "seen"),
            tuple(rows),
            frozenset(range(2, 7 + len(rare))),
        ),
        after=_rare_copies(study, seen),
    )


def _rare_copies(study: Study, epochs: Sequence[float]) -> tuple[str, ...]:
    """A caution where arms differ in what they take for a copy, and no run sees all of its text."""
    if len({run.mixture["unique"] for run in study.runs}) < 2 or max(epochs) >= 1:
        return ()
    low, high = (f"{share:.0%}" for share in (min(epochs), max(epochs)))
    return (
        f"A run sees {low if low == high else f'{low} to {high}'} of its text, and so two copies "
        "of one text seldom: what removing copies is worth can hardly show. Train longer, or "
        "select less.",
    )


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def curves(study: Study) -> Section:
    found = {arm: _curve(study, arm) for arm in study.settings.arms}
    return Section(
        "Training loss",
        text=(
            "Each arm is trained, and this loss measured, on its own data: a lower curve here may "
            "only mean easier data. It shows that training went well; the tables above decide.",
        ),
        figure=charts.legend(list(found))
        + charts.curves(found, "tokens trained on", "training loss, nats per token"),
        after=("In nats per token. Line: mean over seeds; band: lowest to highest seed.",),
    )


def _curve(study: Study, arm: str) -> charts.Curve:
    """Loss over tokens, thinned to CURVE_POINTS means of neighbouring steps."""
    runs = [_metrics(run.folder / "metrics.jsonl") for run in study.runs_of(arm)]
    tokens_T, loss_ST = runs[0][0], np.stack([loss for _, loss in runs])
    cuts = np.array_split(np.arange(len(tokens_T)), min(CURVE_POINTS, len(tokens_T)))
    loss_SP = np.stack([loss_ST[:, cut].mean(1) for cut in cuts], axis=1)
    return charts.Curve(
        [float(tokens_T[cut].mean()) for cut in cuts],
        loss_SP.mean(0).tolist(),
        loss_SP.min(0).tolist(),
        loss_SP.max(0).tolist(),
    )


def _metrics(path: Path) -> tuple[np.ndarray, np.ndarray]:
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return np.array([x["tokens"] for x in lines]), np.array([x["loss"] for x in lines])


def funnels(study: Study) -> list[Section]:
    """What became of the input, for every corpus that an arm uses."""
    roots = {root: name for run in study.runs for name, root in run.mixture["corpora"].items()}
    return [
        Section(
            f"From raw input to documents: corpus “{name}”",
            table=Table(
                ("step", "documents", "MB of text", "note"),
                tuple(
                    (
                        row["step"],
                        f"{row['documents']:,}",
                        "" if row["bytes"] is None else f"{row['bytes'] / 1e6:,.1f}",
                        row["note"],
                    )
                    for row in funnel(standing(Path(root)))
                ),
                frozenset({1, 2}),
            ),
        )
        for root, name in roots.items()
    ]


def cost(study: Study, records: Records) -> Section:
    rows, wall, cpu, gpu = [], 0.0, 0.0, 0.0
    for run in study.runs:
        spent, record = read_json(run.folder / "finished.json"), records[run.folder]
        on_gpu = record["device"].startswith("cuda")
        used = spent["wall_seconds"] * record["processes"] if on_gpu else 0.0
        wall, cpu, gpu = wall + spent["wall_seconds"], cpu + spent["cpu_seconds"], gpu + used
        rows.append(
            (
                run.arm,
                str(run.seed),
                f"{spent['wall_seconds']:,.1f}",
                f"{spent['cpu_seconds']:,.1f}",
                f"{used:,.1f}",
            )
        )
    rows.append(("all", "", f"{wall:,.1f}", f"{cpu:,.1f}", f"{gpu:,.1f}"))
    return Section(
        "What it cost",
        text=(
            "Seconds of each run, with start-up and scoring; of a run that was interrupted, of its "
            "last attempt.",
        ),
        table=Table(
            ("arm", "seed", "seconds", "CPU seconds", "GPU seconds"),
            tuple(rows),
            frozenset({2, 3, 4}),
            frozenset({len(rows) - 1}),
        ),
    )


def provenance(study: Study, records: Records) -> Section:
    here = study.path.resolve().parent
    versions = ", ".join(f"{k} {v}" for k, v in records[study.runs[0].folder]["versions"].items())
    corpora = sorted({root for run in study.runs for root in run.mixture["corpora"].values()})
    rows = tuple(
        (
            run.arm,
            str(run.seed),
            run.key[:KEY_DIGITS],
            os.path.relpath(run.folder, here),
        )
        for run in study.runs
    )
    commands = [
        "# the study, once more: finished runs are skipped",
        f"assay ablate {study.path.name}",
        "# one run by itself",
        f"assay train {os.path.relpath(study.runs[0].folder / 'run.yaml', here)}",
    ]
    return Section(
        "Where it comes from",
        text=(
            f"Versions: {versions}. Corpora: "
            f"{', '.join(os.path.relpath(root, here) for root in corpora)}. The hash of a run "
            "covers data, settings and code: all that changes its loss; verdict.json has all of "
            "its digits.",
        ),
        table=Table(("arm", "seed", "hash of the run", "folder"), rows),
        code="\n".join(commands),
    )
