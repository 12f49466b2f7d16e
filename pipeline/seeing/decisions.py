"""Why a document is in or out: the rules of each preset with value and bounds, and the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from filters.presets import PRESETS, Rule, in_force, judges, reasons
from pipeline import measured
from pipeline.corpus import manifest

Row = dict[str, Any]


def presets(connection: duckdb.DuckDBPyConnection, row: Row) -> dict[str, list[Row]]:
    """Each rule of each preset whose signals are there: its value, its bounds as they stand for
    this language and kind, and the outcome (None: no rule, or no value)."""
    found: dict[str, list[Row]] = {}
    there = {name: value for name, value in row.items() if isinstance(value, dict)}
    for preset in measured.presets(there | {"language": ()} if "lang" in row else {}):
        rules = PRESETS[preset]
        key = f"{row['lang']}-{row['lang_variant']}" if row["lang_variant"] else row["lang"]
        asked = [rule.value for rule in rules] + [f"not ({fails})" for _, fails in reasons(preset)]
        outcome = connection.execute(
            f"select {', '.join(asked)} from documents where id = ?", [row["id"]]
        )
        answers = outcome.fetchall()[0]
        found[preset] = []
        for rule, value, passes in zip(
            rules, answers[: len(rules)], answers[len(rules) :], strict=True
        ):
            has_rule = row["lang"] in rule.bounds and judges(preset, row["kind"])
            bound = in_force(rule, rule.bound(key), row["kind"]) if has_rule else None
            found[preset].append(
                {
                    "signal": rule.name,
                    "formula": formula(rule),
                    "value": value,
                    "minimum": bound.minimum if bound else None,
                    "maximum": bound.maximum if bound else None,
                    "is_below": bound is not None and bound.is_below,
                    "passes": passes,
                    "source": bound.source if bound else None,
                    "correction": bound.correction if bound else None,
                }
            )
    return found


def formula(rule: Rule) -> str:
    """What a rule counts, and in which unit. By the tables of groups alone: lists and models that
    the corpus was made with may have gone."""
    from filters.faithful_groups import COLUMNS
    from filters.signals import GROUPS  # loads numba: 0.5 s

    group, _, column = rule.signal.partition(".")
    own = group.removesuffix("_faithful")
    columns = COLUMNS[own] if own != group else GROUPS[group if column else "language"].columns
    signal = columns.get(column or group)
    told = f"{signal.unit}: {signal.formula}" if signal else "of the text"  # num_chars
    return f"{told}; divided by {rule.per}" if rule.per else told


def verdict(found: Row) -> list[str]:
    """Why the document is in or out, in sentences."""
    row = found["document"]
    lines = []
    if row["heldout"]:
        sets = ", ".join(sorted({item["set"] for item in found["heldout"]}))
        sets = sets or f"as one of its translation group, {row['translation_group']}"
        lines.append(f"out: held out, no mixture trains on it ({sets})")
    if row["duplicate"]:
        first = min(item["id"] for item in found["copies"])
        lines.append(f"out when copies are collapsed: an exact copy of {first}")
    if row["near_duplicate"]:
        lines.append(f"out when near duplicates go: {_near(found)}")
    if row["contained"]:
        others = ", ".join(item["id"] for item in found["holders"][:3])
        lines.append(f"out when what longer documents hold goes: it stands in {others}")
    lines = lines or ["in: not held out, not a copy"]
    if not row["languages"]["pass"]:
        lines.append(f"out of languages.pass: {row['lang']}, score {row['lang_score']:.4g}")
    for preset, rules in found["presets"].items():
        failed = [rule["signal"] for rule in rules if rule["passes"] is False]
        judged = [rule for rule in rules if rule["passes"] is not None]
        if failed:
            lines.append(f"out of {preset}.pass: {', '.join(failed)}")
        else:
            what = row["lang"] if judges(preset, row["kind"]) else f"kind {row['kind']}"
            lines.append(f"{preset}.pass: " + ("yes" if judged else f"no rules for {what}"))
    return lines


def stale(root: Path) -> list[str]:
    """Percentiles that are of other edges than the card of their model has now."""
    from pipeline.groups import has_other_edges  # loads numba

    found = manifest(root)
    return [
        f"{group}.percentile: by other edges than the card of its model has now; `assay prepare` "
        "measures it anew"
        for group in found.get("edges", {})
        if has_other_edges(found, group)
    ]


def _near(found: Row) -> str:
    """Of what the document is a near duplicate."""
    if found["pairs"]:
        others = ", ".join(item["id"] for item in found["pairs"][:3])
        return f"a verified pair with {others}"
    size, cluster = found["cluster"][0]["size"], found["cluster"][0]["cluster"]
    return (
        f"of one of {size:,} texts in cluster {cluster}, of which one that comes before it stays "
        "(pairs of clusters this large are verified when documents are selected, and not stored)"
    )
