"""What labels of `assay review` say: the share of bad documents, weighed as they were drawn."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.seeing import labels
from pipeline.seeing.agreement import Stratum, stratified, weighted_kappa, wilson
from pipeline.seeing.asking import Row, checked, rows
from pipeline.seeing.rubrics import Rubric
from pipeline.syntax import text_literal

# Of labels from before designs were kept: whatever was drawn, sources were the likely strata.
UNKNOWN = {"per": "source"}


def summary(root: Path, folder: Path, asked: Rubric, where: str | None) -> list[str]:
    """Share of bad documents that `where` selects: by source, of all, and of those it does not
    select; how the documents were drawn; agreement of reviewers.

    Raises:
        ConfigError: there is no label of this rubric.
    """
    table = labels.read(folder).to_pylist()
    found = [row for row in table if row["rubric"] == asked.id]
    if not found:
        known = sorted({row["rubric"] for row in table})
        raise ConfigError(
            f"{folder}: no labels of rubric {asked.id}; "
            + (f"there are some of {', '.join(known)}" if known else "make some without --summary")
        )
    contents: dict[str, list[float]] = {}
    for row in found:
        contents.setdefault(row["content_hash"], []).append(row["label"])
    bad = {c: sum(given) / len(given) < asked.bad_below for c, given in contents.items()}
    designs = [json.loads(row["design"]) if row["design"] else UNKNOWN for row in found]
    per = sorted({design["per"] for design in designs if design["per"]})
    documents = _labelled(root, where, per, list(bad))
    selected = [row for row in documents if row["selected"]]
    lines = [f"{asked.id}: {counted(len(found), 'label')} of {counted(len(documents), 'document')}"]
    lines += _drawn(designs, where)
    for source in sorted({row["source"] for row in selected}):
        of = [bad[row["content_hash"]] for row in selected if row["source"] == source]
        low, high = wilson(sum(of), len(of))
        lines.append(f"  {source:<24} bad {sum(of)} of {len(of)}, {low:.0%} to {high:.0%}")
    sizes = _sizes(root, where, per)
    for fate, what in ((True, "selected"), (False, "not selected"), (None, "NULL")):
        of_fate = [row for row in documents if row["selected"] is fate]
        if of_fate or (where and fate is not None):
            name = f"{what} by {where}" if where else "all"
            share = _share(of_fate, sizes.get(fate, Counter()), bad, per)
            lines.append(f"  {name}: bad {share}")
    return lines + _agreements(found)


def _contents(where: str | None, per: list[str], condition: str = "true") -> str:
    """One row a content: its source and stratum (of a copy that is selected, where one is), and
    what the predicate says of it."""
    chosen = checked(where)
    stratum = "[" + ", ".join(f"coalesce({checked(p)}::varchar, 'NULL')" for p in per) + "]"

    def of_first(value: str) -> str:
        first = f"arg_min({value}, id)"
        return f"coalesce({first} filter (where {chosen}), {first})"

    return (
        f"select content_hash, {of_first('source')} as source, {of_first(stratum)} as stratum, "
        f"bool_or({chosen}) as selected from documents where {condition} group by content_hash"
    )


def _labelled(root: Path, where: str | None, per: list[str], contents: list[str]) -> list[Row]:
    listed = ", ".join(map(text_literal, contents))
    found = rows(root, _contents(where, per, f"content_hash in ({listed})"))
    return [row | {"stratum": tuple(row["stratum"])} for row in found]


def _sizes(root: Path, where: str | None, per: list[str]) -> dict[bool | None, Counter[Any]]:
    """Contents of each stratum, for what the predicate says of them."""
    found: dict[bool | None, Counter[Any]] = {}
    question = (
        f"select selected, stratum, count(*) as n from ({_contents(where, per)}) group by all"
    )
    for row in rows(root, question):
        found.setdefault(row["selected"], Counter())[tuple(row["stratum"])] = row["n"]
    return found


def _share(found: list[Row], sizes: Counter[Any], bad: dict[str, bool], per: list[str]) -> str:
    """The share of bad ones in a line, with how it was reckoned and what it leaves out."""
    if not found:
        return "none labelled"
    of: dict[Any, list[bool]] = {}
    for row in found:
        of.setdefault(row["stratum"], []).append(bad[row["content_hash"]])
    strata = [Stratum(sizes[name], len(hits), sum(hits)) for name, hits in of.items()]
    share = stratified(strata)
    covered, total = sum(stratum.documents for stratum in strata), sizes.total()
    how = f"stratified by {', '.join(per)}" if per else "drawn at random"
    error = "" if share.error is None else f", standard error {share.error:.1%}"
    line = (
        f"{share.mean:.1%}, {share.low:.0%} to {share.high:.0%} of {counted(covered, 'document')} "
        f"({how}{error}; {counted(len(found), 'document')} labelled)"
    )
    if covered < total:
        missing = sorted(", ".join(name) for name in sizes.keys() - of.keys())
        line += f"; nothing is known of {total - covered:,} more, of {'; '.join(missing[:5])}"
    return line


def _drawn(designs: list[dict[str, Any]], where: str | None) -> list[str]:
    """How the labelled documents were drawn, and which of them not by what is asked."""
    lines = []
    for said, count in sorted(Counter(json.dumps(design) for design in designs).items()):
        design = json.loads(said)
        if design == UNKNOWN:
            lines.append(f"  drawn as an earlier version did not write down: {count}")
            continue
        options = [f'--where "{design["where"]}"'] if design["where"] else []
        options += [f"-n {design['n']}"]
        options += [f"--per {design['per']}"] if design["per"] else []
        note = "" if design["where"] in (None, where) else "; no random ones of what is asked"
        lines.append(f"  drawn by {' '.join(options)} --seed {design['seed']}: {count}{note}")
    return lines


def _agreements(found: list[Row]) -> list[str]:
    by_reviewer: dict[str, dict[str, float]] = {}
    for row in found:
        by_reviewer.setdefault(row["reviewer"], {})[row["content_hash"]] = row["label"]
    lines = []
    for a, b in combinations(sorted(by_reviewer), 2):
        both = sorted(by_reviewer[a].keys() & by_reviewer[b].keys())
        if both:
            ours, theirs = ([by_reviewer[who][c] for c in both] for who in (a, b))
            same = sum(x == y for x, y in zip(ours, theirs, strict=True))
            lines.append(
                f"  {a} and {b}: the same label for {same} of {len(both)}, weighted kappa "
                f"{weighted_kappa(ours, theirs):.2f}"
            )
    return lines
