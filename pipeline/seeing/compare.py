"""`assay compare A B`: which texts two corpora share, how their signals differ, both funnels.

A difference of means is told with its noise: the standard error of the two means, documents being
independent draws. One above ALARM_ERRORS of them is shown, beside how far the median moved, by
language and by source; by source also the shares that are kept, pass a preset, or a detector flags.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from filters.edges import PSI_SHIFTED
from pipeline import measured
from pipeline.finished import reading
from pipeline.report import funnel
from pipeline.schema import HASH
from pipeline.seeing.asking import TIMEOUT_SECONDS, Row, rows
from pipeline.seeing.histograms import numeric_signals
from pipeline.sql import ask
from pipeline.tables import names_of

ALARM_ERRORS = 4.0  # of 60 signals in two languages, chance alone gives one in 130 comparisons
PERCENTILE = ".percentile"
FLAGGED = "flagged."  # shares of these are rare
# Of the documents of a source: a change that is told, of what is kept or passes, and of what a
# detector flags. That is rare: `ads` flags 0 to 4 % of human sources (docs/advertising.md).
MOVED_SHARE, MOVED_FLAGGED = 0.05, 0.02
BY = {"language": "lang", "source": "source"}  # what drift is told by -> its column
Place = tuple[str, str, str]  # by what, its name, signal
EXAMPLE = "example:\n  assay compare runs/web-2026-39 runs/web-2026-40"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay compare",
        description="Texts shared, new and gone; the drift of each signal; funnels side by side; "
        "how far percentiles of learned quality are from where they were fitted.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", help="folder or URL of a corpus")
    parser.add_argument("after", help="folder or URL of another")
    parser.add_argument("--json", action="store_true", help="all of it as JSON")
    options = parser.parse_args(argv)
    with reading(options.before) as before, reading(options.after) as after:
        found = compare(before, after)
    print(json.dumps(found, ensure_ascii=False, indent=1) if options.json else shown(found))
    return 0


def compare(before: Path, after: Path) -> dict[str, Any]:
    """Contents in both, in one; funnels; drift by language and signal; shares by source."""
    there = _signals(before), _signals(after)
    signals = sorted(there[0] & there[1])
    contents = [_contents(root) for root in (before, after)]
    both = np.sort(np.concatenate(contents))
    shared = int((both[1:] == both[:-1]).sum())
    return {
        "contents": {
            "shared": shared,
            "gone": len(contents[0]) - shared,
            "new": len(contents[1]) - shared,
        },
        "funnels": [funnel(before), funnel(after)],
        "drift": drift(moments(before, signals), moments(after, signals)),
        "shifts": _shifts(before, after, signals),
        "sources": shares_by_source(before, after),
        "in_one_alone": sorted(there[0] ^ there[1]),
    }


def _signals(root: Path) -> set[str]:
    return {name for names in numeric_signals(root).values() for name in names}


def _contents(root: Path) -> npt.NDArray[np.bytes_]:
    """The distinct contents, 16 bytes each."""
    question = "select distinct unhex(content_hash) as content from documents"
    with ask(root, question, macros={}, timeout_seconds=TIMEOUT_SECONDS) as batches:
        return names_of(batches.read_all()["content"].cast(HASH))


def moments(root: Path, signals: list[str]) -> dict[Place, Row]:
    """Of each signal, by language and by source: documents with a value, mean, variance, median."""
    asked = ", ".join(
        f"{{'n': count({s}), 'mean': avg({s})::double, 'variance': var_samp({s})::double, "
        f"'median': median({s})::double}} as s{i}"
        for i, s in enumerate(signals)
    )
    found: dict[Place, Row] = {}
    if not signals:
        return found
    for by, column in BY.items():
        of = f"from documents where {column} is not null group by 1"
        for row in rows(root, f"select {column} as name, {asked} {of}"):
            for i, signal in enumerate(signals):
                if row[f"s{i}"]["n"] > 1:
                    found[by, row["name"], signal] = row[f"s{i}"]
    return found


def drift(before: dict[Place, Row], after: dict[Place, Row]) -> list[Row]:
    """Of each signal, by language and by source that both have, how far its mean moved, farthest
    first.

    `errors` is the difference in standard errors of it (Welch); 0 where nothing varies or moved.
    """
    found = []
    for place in before.keys() & after.keys():
        a, b = before[place], after[place]
        error = math.sqrt(a["variance"] / a["n"] + b["variance"] / b["n"])
        moved = b["mean"] - a["mean"]
        by, name, signal = place
        found.append(
            {
                by: name,
                "signal": signal,
                "before": a["mean"],
                "after": b["mean"],
                "moved": moved,
                "noise": error,
                "errors": moved / error if error else 0.0 if moved == 0 else math.inf,
                "median_moved": b["median"] - a["median"],
                "documents": [a["n"], b["n"]],
            }
        )
    names = [*BY, "signal"]
    return sorted(found, key=lambda r: (-abs(r["errors"]), [r.get(name, "") for name in names]))


def _shifts(before: Path, after: Path, signals: list[str]) -> dict[str, list[list[Row]]]:
    """Of each learned group that both have, how far its percentiles are from the corpus on which
    their edges were fitted: before, after."""
    groups = [name.removesuffix(PERCENTILE) for name in signals if name.endswith(PERCENTILE)]
    if not groups:
        return {}
    from pipeline.learned.percentiles import shifts_of  # loads numba: 0.5 s

    return {group: [shifts_of(root, group) for root in (before, after)] for group in groups}


def shares_by_source(before: Path, after: Path) -> list[Row]:
    """Of each source the documents on both sides, and each share that both have of it: what is
    kept, passes a preset, or a detector flags, of so many documents that are judged."""
    questions = [_questions(root) for root in (before, after)]
    both = {name: sql for name, sql in questions[0].items() if name in questions[1]}
    asked = ", ".join(
        f"{{'share': avg(({sql})::int), 'documents': count({sql})}} as s{i}"
        for i, sql in enumerate(both.values())
    )
    question = f"select source, count(*) as documents, {asked} from documents group by source"
    sides = [{row["source"]: row for row in rows(root, question)} for root in (before, after)]
    return [
        {
            "source": source,
            "documents": [side[source]["documents"] if source in side else 0 for side in sides],
            "shares": {
                name: [side[source][f"s{i}"] if source in side else None for side in sides]
                for i, name in enumerate(both)
            },
        }
        for source in sorted({*sides[0], *sides[1]})
    ]


def _questions(root: Path) -> dict[str, str]:
    """What is asked of each document of a corpus: name of the share -> SQL."""
    groups = {name: columns.names for name, columns in measured.schemas(root).items()}
    return {
        "kept": "kept",
        **{f"{FLAGGED}{name}": flag for name, flag in measured.flags(groups).items()},
        **{f"{preset}.pass": f"{preset}.pass" for preset in measured.presets(groups)},
    }


def shown(found: dict[str, Any], most: int = 20) -> str:
    """Text for a terminal."""
    contents = found["contents"]
    lines = [
        f"contents: {contents['shared']:,} in both, {contents['gone']:,} gone, "
        f"{contents['new']:,} new",
        f"\n{'':<30}{'before':>14}{'after':>14}",
    ]
    steps = dict.fromkeys(row["step"] for funnel in found["funnels"] for row in funnel)
    counts = [{r["step"]: r["documents"] for r in funnel} for funnel in found["funnels"]]
    for step in steps:
        cells = [f"{count[step]:,}" if step in count else "-" for count in counts]
        lines.append(f"{step:<30}{cells[0]:>14}{cells[1]:>14}")
    for by in BY:
        lines += _drifted(by, [row for row in found["drift"] if by in row], most)
    if alone := found["in_one_alone"]:
        lines.append(f"measured in one of them alone: {', '.join(alone)}")
    for group, sides in found["shifts"].items():
        lines += ["", *_shifted(group, *sides)]
    lines += alarms(found["sources"])
    return "\n".join(lines)


def _drifted(by: str, drifts: list[Row], most: int) -> list[str]:
    """The signals whose mean moved, by language or by source."""
    moved = [row for row in drifts if abs(row["errors"]) > ALARM_ERRORS]
    wide = max((len(row[by]) for row in moved[:most]), default=0)
    lines = [
        f"\nby {by}, signals whose mean moved by more than {ALARM_ERRORS:g} standard errors: "
        f"{len(moved)} of {len(drifts)}"
    ]
    for row in moved[:most]:
        lines.append(
            f"  {row[by]:<{wide}}  {row['signal']:<36}{row['before']:>11.4g} ->"
            f"{row['after']:>11.4g}   noise {row['noise']:.2g}, median {row['median_moved']:+.3g}"
        )
    return lines


def _shifted(group: str, before: list[Row], after: list[Row]) -> list[str]:
    """How far the percentiles of a group are from their edges in each language, on both sides."""
    lines = [
        f"percentiles of {group}, which are even where its edges were fitted "
        f"(PSI from {PSI_SHIFTED:g} on: moved)"
    ]
    sides = [{row["lang"]: row for row in side} for side in (before, after)]
    for lang in sorted({*sides[0], *sides[1]}):
        rows = [side.get(lang) for side in sides]
        psi = " -> ".join(f"{row['psi']:.3f}" if row else "-" for row in rows)
        top = " -> ".join(f"{row['top_tenth']:.1%}" if row else "-" for row in rows)
        moved = "  moved" if any(row and row["shifted"] for row in rows) else ""
        lines.append(f"  {lang:<4}PSI {psi}   at .9 and above {top}{moved}")
    return lines


def alarms(sources: list[Row]) -> list[str]:
    """Sources that came, went, or of which another share is kept, passes or is flagged."""
    lines = []
    for row in sources:
        a, b = row["documents"]
        if not a or not b:
            lines.append(
                f"source {row['source']} is {'gone' if a else 'new'}: {max(a, b):,} documents"
            )
        elif moved := [told for share in row["shares"].items() if (told := _moved(*share))]:
            lines.append(f"source {row['source']}: {'; '.join(moved)}")
    return ["\nalarms", *(f"  {line}" for line in lines)] if lines else []


def _moved(name: str, sides: list[Row]) -> str:
    """A share that moved by more than its noise and what is worth telling, else ""."""
    (share, a), (now, b) = ((side["share"], side["documents"]) for side in sides)
    if not a or not b:
        return ""
    noise = math.sqrt(share * (1 - share) / a + now * (1 - now) / b)
    least = MOVED_FLAGGED if name.startswith(FLAGGED) else MOVED_SHARE
    if abs(now - share) <= max(least, ALARM_ERRORS * noise):
        return ""
    return f"{name} {share:.1%} -> {now:.1%} (noise {noise:.1%})"
