"""What each rule of a preset, or part of a predicate, does to a corpus: how many documents it
fails, how many it alone, and which rules fail the same ones.

A document is judged where the preset has rules for its language and kind; by a predicate every one
is. Asked once: of each document the rules it fails become the bits of a number, and numbers are
counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from filters.presets import expression, reasons
from pipeline import measured, unmeasured
from pipeline.amounts import counted
from pipeline.corpus import CorpusError
from pipeline.predicates import conjuncts
from pipeline.seeing.asking import checked, rows
from pipeline.syntax import SqlError

MOST_RULES = 64  # bits of a number

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rules:
    """The rules of a preset over the documents of one language, or the parts of a predicate."""

    name: str  # what the rules are of
    language: str  # "" where they are not of one
    signals: tuple[str, ...]
    judged: int
    passes: int
    fails: Counts  # documents that each rule fails
    only: Counts  # ... and no other rule does: what it removes, given the others
    both: Counts  # (rule, rule): documents that both fail
    unknown: tuple[int, ...] = ()  # of each rule, documents for which it is NULL; among its fails

    @property
    def title(self) -> str:
        return f"{self.name}, {self.language}" if self.language else self.name

    def silent(self) -> list[str]:
        """Rules that fail no document."""
        return [self.signals[i] for i in np.flatnonzero(self.fails == 0)]

    def nearest(self, rule: int) -> tuple[str, float] | None:
        """The rule that fails most of the documents that this one fails, and which share."""
        others = self.both[rule].copy()
        others[rule] = -1
        if len(others) < 2 or not self.fails[rule] or others.max() == 0:
            return None
        other = int(others.argmax())
        return self.signals[other], others[other] / self.fails[rule]


def known_presets(root: Path) -> list[str]:
    """Presets whose signals were measured."""
    return list(measured.presets_of(root))


def count(root: Path, preset: str, within: str | None = None) -> list[Rules]:
    """One `Rules` a language, the one of most documents first.

    Args:
        within: only of documents for which this is true.

    Raises:
        CorpusError: the preset's signals were not measured.
        SqlError: `within` is no predicate.
        ValueError: no such preset.
    """
    rules = reasons(preset)
    if why_not := unmeasured.told(root, preset):
        raise CorpusError(f"{root}: {why_not}")
    found = rows(
        root,
        f"select coalesce(lang, '') as language, {_bits(fails for _, fails in rules)} as failed, "
        f"count(*) as documents from documents where ({expression(preset)}) is not null "
        f"and {checked(within)} group by all order by all",
    )
    signals = tuple(signal for signal, _ in rules)
    languages = dict.fromkeys(row["language"] for row in found)
    by_language = [
        _counted(preset, language, signals, [r for r in found if r["language"] == language])
        for language in languages
    ]
    return sorted(by_language, key=lambda rules: (-rules.judged, rules.language))


def parts(
    root: Path, name: str, where: str, within: str | None = None, *, null_passes: bool = False
) -> Rules:
    """What each part of a predicate fails, of those that `and` joins; NULL fails, as it does where
    a mixture says `missing: drop`, unless `null_passes`.

    Raises:
        SqlError: one of them is no predicate, or has too many parts.
    """
    rules = conjuncts(where)
    if len(rules) > MOST_RULES:
        raise SqlError(f"{len(rules)} parts that `and` joins; at most {MOST_RULES} can be counted")
    fails = (f"not coalesce(({rule})::boolean, {null_passes})" for rule in rules)
    nulls = ", ".join(f"count(*) filter (({rule}) is null) as n{i}" for i, rule in enumerate(rules))
    found = rows(
        root,
        f"select '' as language, {_bits(fails)} as failed, count(*) as documents, {nulls} "
        f"from documents where {checked(within)} group by all order by all",
    )
    unknown = tuple(sum(row[f"n{i}"] for row in found) for i in range(len(rules)))
    return replace(_counted(name, "", tuple(rules), found), unknown=unknown)


def _bits(fails: Iterable[str]) -> str:
    """A number with a bit for each of these expressions that is true."""
    return " | ".join(
        f"(case when {sql} then {1 << i} else 0 end)::ubigint" for i, sql in enumerate(fails)
    )


def _counted(
    preset: str, language: str, signals: tuple[str, ...], found: Sequence[dict[str, int]]
) -> Rules:
    documents = np.array([row["documents"] for row in found], np.int64)
    masks = np.array([row["failed"] for row in found], np.uint64)
    failed = masks[:, None] >> np.arange(len(signals), dtype=np.uint64) & np.uint64(1)
    failed = failed.astype(np.int64)
    alone = failed.sum(axis=1) == 1
    return Rules(
        name=preset,
        language=language,
        signals=signals,
        judged=int(documents.sum()),
        passes=int(documents[masks == 0].sum()),
        fails=documents @ failed,
        only=documents[alone] @ failed[alone],
        both=(failed * documents[:, None]).T @ failed,
    )


def shown(found: Iterable[Rules]) -> list[str]:
    """Lines for a terminal: a table for each language."""
    lines: list[str] = []
    for rules in found:
        lines.append(
            f"{rules.title}: {counted(rules.judged, 'document')}, of which "
            f"{rules.passes:,} pass ({rules.passes / max(1, rules.judged):.1%})"
        )
        lines.append(f"  {'rule':<36}{'fails':>10}{'':>8}{'only it':>10}{'':>8}  most of them too")
        for i in np.argsort(-rules.fails, kind="stable").tolist():
            if rules.fails[i] == 0:
                continue
            near = rules.nearest(i)
            too = f"  {near[0]} ({near[1]:.0%})" if near else ""
            counts = "".join(
                f"{count:>10,}{count / rules.judged:>8.1%}"
                for count in (rules.fails[i], rules.only[i])
            )
            lines.append(f"  {rules.signals[i]:<36}{counts}{too}")
        if silent := rules.silent():
            lines.append(f"  fail nothing: {', '.join(silent)}")
        for signal, documents in zip(rules.signals, rules.unknown, strict=False):
            if documents:
                lines.append(f"  NULL for {counted(documents, 'document')}: {signal}")
    return lines


def overlap(found: Iterable[Rules]) -> list[str]:
    """A matrix for each language: of the documents that the rule of a line fails, the percentage
    that the rule of a column fails too."""
    lines: list[str] = []
    for rules in found:
        failing = [i for i in np.argsort(-rules.fails, kind="stable").tolist() if rules.fails[i]]
        numbers = "".join(f"{n:>5}" for n in range(1, len(failing) + 1))
        lines.append(f"{rules.title}: % of a line that the column fails too")
        lines.append(f"  {'':<40}{numbers}")
        for n, i in enumerate(failing, 1):
            shares = "".join(f"{100 * rules.both[i, j] / rules.fails[i]:>5.0f}" for j in failing)
            lines.append(f"  {n:>2}  {rules.signals[i]:<36}{shares}")
    return lines
