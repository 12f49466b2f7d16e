"""What the runs of a study found: scores side by side, differences, verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.config import ConfigError
from trainer.ablation.statistics import (
    CONFIDENCE,
    Difference,
    Floats,
    Verdict,
    bits_per_byte,
    decide,
    difference,
    shares,
)
from trainer.ablation.study import Run, Study, require_held_out

COLUMNS = ("step", "set", "language", "content_hash", "nats", "num_bytes")
Item = tuple[str, str, bytes, int]  # set, language, content_hash, num_bytes


@dataclass(frozen=True)
class Scores:
    """Nats of every arm on the same held-out items, at the last step."""

    items: tuple[Item, ...]  # in the order of the columns of `nats`
    nats: dict[str, Floats]  # arm -> [seeds, items]


@dataclass(frozen=True)
class Row:
    """One figure of the table: bits per byte over some items, by arm."""

    name: str
    num_items: int
    bits: dict[str, tuple[float, ...]]  # arm -> one value a seed
    differences: dict[str, Difference]  # arm (all but the baseline) -> arm minus baseline


@dataclass(frozen=True)
class Outcome:
    """The answer of a study and what it rests on."""

    confidence: float  # of each interval
    primary: Row
    languages: tuple[Row, ...]
    sets: tuple[Row, ...]  # one for each held-out set (and language, where a set has several)
    others: tuple[Row, ...]  # the same in languages that the study does not ask about
    contributions: dict[str, dict[str, float]]  # arm -> set -> its part of the primary difference
    verdicts: dict[str, Verdict]


def read_scores(study: Study) -> Scores:
    """Scores of all runs of a finished study.

    Raises:
        ConfigError: runs were scored on different items, or a score is not finite.
    """
    items: tuple[Item, ...] | None = None
    nats: dict[str, Floats] = {}
    for arm in study.settings.arms:
        rows = []
        for run in study.runs_of(arm):
            found, scores = read_run(run.folder / "evaluations.parquet")
            items = items or found
            if found != items:
                raise ConfigError(_other_items(run, found, items))
            if not np.isfinite(scores).all():
                raise ConfigError(
                    f"arm `{arm}`, seed {run.seed}: a held-out score is not finite; the run "
                    "diverged: lower `learning_rate` in run.yaml and call again"
                )
            rows.append(scores)
        nats[arm] = np.stack(rows)
    assert items is not None
    return Scores(items, nats)


def read_run(path: Path) -> tuple[tuple[Item, ...], Floats]:
    """Items and nats of one run at its last step, by set and content hash."""
    table = pq.read_table(path, columns=list(COLUMNS))
    last = pc.equal(table["step"], pc.max(table["step"]))
    scored = pc.greater(table["num_bytes"], 0)  # a text of one token has nothing to predict it from
    table = table.filter(pc.and_(last, scored))
    table = table.sort_by([("set", "ascending"), ("content_hash", "ascending")])
    columns = [table[name].to_pylist() for name in ("set", "language", "content_hash", "num_bytes")]
    return tuple(zip(*columns, strict=True)), table["nats"].to_numpy().astype(np.float64)


def _other_items(run: Run, found: Sequence[Item], expected: Sequence[Item]) -> str:
    odd = sorted(set(found) ^ set(expected))[0]
    return (
        f"arm `{run.arm}`, seed {run.seed} was scored on {len(found):,} held-out items, the run "
        f"before it on {len(expected):,} (for instance {odd[2].hex()} of set {odd[0]!r} is in one "
        "only); arms must share their held-out sets: use one corpus version and one "
        "`evaluate` setting for all arms"
    )


def compare(study: Study, scores: Scores) -> Outcome:
    """Differences of each arm from the baseline, on the primary number and on each held-out set.

    With several arms each comparison has its share of the 5 % (Bonferroni), so that all verdicts
    together are right with 95 %.
    """
    primary = study.settings.primary
    require_held_out(study, {(name, language) for name, language, _, _ in scores.items})
    num_comparisons = len(study.settings.arms) - 1
    confidence = 1 - (1 - CONFIDENCE) / num_comparisons

    def row(name: str, chosen: list[int], weights: dict[str, float]) -> Row:
        num_bytes = np.array([scores.items[i][3] for i in chosen], np.float64)
        languages = [scores.items[i][1] for i in chosen]
        nats = {arm: values[:, chosen] for arm, values in scores.nats.items()}
        base = nats[study.baseline]
        return Row(
            name,
            sum(language in weights for language in languages),
            {
                arm: tuple(bits_per_byte(values, num_bytes, languages, weights).tolist())
                for arm, values in nats.items()
            },
            {
                arm: difference(values, base, num_bytes, languages, weights, confidence)
                for arm, values in nats.items()
                if arm != study.baseline
            },
        )

    counted = _counted(scores.items, primary.sets)
    main = row("primary", counted, primary.languages)
    languages = tuple(
        row(name, [i for i in counted if scores.items[i][1] == name], {name: 1.0})
        for name in primary.languages
    )
    sets: list[Row] = []
    others: list[Row] = []
    for name, chosen in _by_set(scores.items).items():
        language = scores.items[chosen[0]][1]
        group = sets if language in primary.languages else others
        group.append(row(name, chosen, {language: 1.0}))
    verdicts = {
        arm: decide(d, {r.name: r.differences[arm] for r in sets})
        for arm, d in main.differences.items()
    }
    parts = _contributions(scores, counted, study)
    return Outcome(confidence, main, languages, tuple(sets), tuple(others), parts, verdicts)


def _contributions(scores: Scores, counted: list[int], study: Study) -> dict[str, dict[str, float]]:
    """What each held-out set adds to the difference of each arm; an arm's parts sum to it."""
    num_bytes = np.array([scores.items[i][3] for i in counted], np.float64)
    languages = [scores.items[i][1] for i in counted]
    share = shares(num_bytes, languages, study.settings.primary.languages)
    mean = {arm: nats[:, counted].mean(axis=0) for arm, nats in scores.nats.items()}
    groups = {
        name: mine
        for name, chosen in _by_set(scores.items).items()
        for mine in [np.isin(counted, chosen)]
        if share[mine].any()
    }
    result: dict[str, dict[str, float]] = {}
    for arm in scores.nats:
        if arm != study.baseline:
            part = share * (mean[arm] - mean[study.baseline]) / num_bytes / np.log(2)
            result[arm] = {name: float(part[mine].sum()) for name, mine in groups.items()}
    return result


def _counted(items: Sequence[Item], sets: str | Sequence[str]) -> list[int]:
    """Items of the primary number: a text that stands in two sets counts once in its language."""
    first: dict[tuple[str, bytes], int] = {}
    for index, item in enumerate(items):
        if sets == "all" or item[0] in sets:
            first.setdefault((item[1], item[2]), index)
    return list(first.values())


def _by_set(items: Sequence[Item]) -> dict[str, list[int]]:
    """Items of each set; a set with several languages is split, for they do not compare."""
    groups: dict[tuple[str, str], list[int]] = {}
    for index, (name, language, _, _) in enumerate(items):
        groups.setdefault((name, language), []).append(index)
    spoken = [name for name, _ in groups]
    return {
        name if spoken.count(name) == 1 else f"{name} ({language})": chosen
        for (name, language), chosen in sorted(groups.items())
    }
