"""What an audit found, as text for a terminal, as JSON, as a page."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from html import escape
from string import Template
from typing import Any

from pipeline.amounts import counted
from pipeline.auditing.audit import Audit, Shown
from pipeline.auditing.differences import Piece, Place, columns, differences
from pipeline.seeing.page import TEMPLATE, table

PLACES = 3  # of a pair that are shown
STYLE = "<style>ins { text-decoration: none; background: #f6d4cd; }</style>"


def told(found: Audit) -> list[str]:
    """Lines for a terminal."""
    near = found.near
    width = max(20, (shutil.get_terminal_size((120, 40)).columns - 3) // 2)
    lines = [_how(found), "", f"{'Jaccard':<14}{'proposed by LSH':<36}{'its curve':>9}   known"]
    for band in found.bands:
        curve = f"{band.curve:>9.1%}" if band.proposed.draws else f"{'':>9}"
        known = str(band.known) if band.low >= near.threshold else "not a pair"
        lines.append(f"{band.low:.2f} to {band.high:.2f}  {band.proposed!s:<36}{curve}   {known}")
    lines += ["", *figures(found)[1:]]
    lines += [f"of what LSH proposes, a pair: {found.proposals}; the others stay, being verified"]
    lines += ["", f"{'source':<24}{'documents':>12}{'copies':>12}{'near':>12}{'lost':>8}"]
    for row in found.losses:
        numbers = "".join(f"{row[name]:>12,}" for name in ("documents", "copies", "near"))
        lines.append(f"{row['source']:<24}{numbers}{row['share']:>8.1%}")
    for pair in found.pairs:
        lines += ["", f"--- {pair.title}"]
        for place in _places(pair):
            lines += [*columns(place, width, sys.stdout.isatty()), ""]
    return [*lines, "", *alarms(found)]


def figures(found: Audit) -> list[str]:
    """What was compared, recall and precision."""
    lines = [_how(found), f"recall: of pairs at {found.near.threshold:g} and above, known"]
    lines += [f"  {what:<24} {rate}" for what, rate in found.recall.items()]
    lines += ["precision: of stored pairs, read again, at the threshold"]
    return lines + [f"  {what:<24} {rate}" for what, rate in found.precision.items()]


def alarms(found: Audit) -> list[str]:
    """What a person has to look at; one line if there is nothing."""
    lines = [
        f"stored as a pair of {pair.stored:.3f}, but {pair.jaccard:.3f} by their texts: "
        f"{pair.a['id']} and {pair.b['id']}"
        for pair in found.wrong
    ]
    return [f"warning: {line}" for line in [*lines, *found.warnings]] or ["no warning"]


def _how(found: Audit) -> str:
    near, compared = found.near, found.compared
    return (
        f"{counted(found.sampled, 'text')} by lot compared with {compared.documents:,} of "
        f"{counted(compared.of_documents, 'document')} in {compared.seconds:.0f} s; threshold "
        f"{near.threshold:g}, {near.bands} bands of {near.rows}"
    )


def _places(pair: Shown) -> list[Place]:
    a, b = (row["text"] for row in pair.sides)
    return differences(a, b)[:PLACES] or [([("(differ in what is folded or cut)", False)], [])]


def as_json(found: Audit) -> dict[str, Any]:
    return {
        "sampled": found.sampled,
        "compared_with": found.compared.documents,
        "of_documents": found.compared.of_documents,
        "seconds": found.compared.seconds,
        "near": found.near.model_dump(),
        "bands": [
            {
                "low": band.low,
                "high": band.high,
                "proposed": band.proposed.as_json(),
                "curve": band.curve,
                "known": band.known.as_json(),
            }
            for band in found.bands
        ],
        "recall": {what: rate.as_json() for what, rate in found.recall.items()},
        "precision": {what: rate.as_json() for what, rate in found.precision.items()},
        "proposals": found.proposals.as_json(),
        "losses": found.losses,
        "warnings": alarms(found),
        "pairs": [
            {
                "what": pair.what,
                "jaccard": pair.jaccard,
                **{side: row | {"text": None} for side, row in zip("ab", pair.sides, strict=True)},
            }
            for pair in found.pairs
        ],
    }


def page(found: Audit) -> str:
    """The same as one HTML file, without scripts. It holds parts of real documents."""
    template = Template(TEMPLATE.read_text("utf-8"))
    return template.substitute(
        title=escape(f"{found.name}: near duplicates"), body="\n".join([STYLE, *_body(found)])
    )


def _body(found: Audit) -> Iterator[str]:
    yield f"<p>{escape(_how(found))}</p>"
    yield from (f"<p><b>{escape(line)}</b></p>" for line in alarms(found))
    yield "<h2>By band of similarity</h2>"
    yield table(
        ("Jaccard", "proposed by LSH", "its curve", "known"),
        (
            (
                f"{band.low:.2f} to {band.high:.2f}",
                str(band.proposed),
                f"{band.curve:.1%}" if band.proposed.draws else "",
                str(band.known) if band.low >= found.near.threshold else "not a pair",
            )
            for band in found.bands
        ),
    )
    yield f"<p>Of what LSH proposes, a pair: {escape(str(found.proposals))}.</p>"
    for title, rates in (("Recall", found.recall), ("Precision", found.precision)):
        yield f"<h2>{title}</h2>"
        yield table(("of", "pairs"), ((what, str(rate)) for what, rate in rates.items()))
    yield "<h2>Losses</h2>"
    yield table(
        ("source", "documents", "exact copies", "near", "lost", "largest cluster"),
        (
            (
                row["source"],
                *(f"{row[name]:,}" for name in ("documents", "copies", "near")),
                f"{row['share']:.1%}",
                f"{row['removed']:,}: {row['kept']}" if row["cluster"] else "",
            )
            for row in found.losses
        ),
    )
    yield "<h2>Pairs</h2>"
    for pair in found.pairs:
        yield f"<p><b>{escape(pair.title)}</b></p>"
        for sides in _places(pair):
            marked = "".join(f"<td>{_marked(side)}</td>" for side in sides)
            yield f'<div class="wide"><table><tr>{marked}</tr></table></div>'


def _marked(pieces: list[Piece]) -> str:
    return "".join(f"<ins>{escape(t)}</ins>" if differs else escape(t) for t, differs in pieces)
