"""The report of a corpus as one HTML file, without scripts: funnel, rules, signals with thresholds.

It holds the beginnings of real documents: treat it as you treat the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from string import Template

import numpy as np

from filters.presets import OWN, PRESETS, Rule
from pipeline.corpus import manifest
from pipeline.report import funnel
from pipeline.seeing import rules as counting
from pipeline.seeing.histograms import (
    BINS,
    Bound,
    Histogram,
    histograms,
    nearest,
    numeric_signals,
)

TEMPLATE = Path(__file__).with_name("page.html")
COLOURS = ("#2a6fb0", "#c2571a", "#1f7a5c", "#7a4fa3", "#b08900", "#4c5a6b")
MOST_SOURCES = len(COLOURS)  # in a histogram; the others are one
WIDTH, HEIGHT = 360, 90
OTHERS = "others"

Thresholds = list[tuple[str, float]]


def page(root: Path, predicates: Iterable[counting.Rules] = ()) -> str:
    """The whole page; of the parts of predicates too."""
    found = manifest(root)
    languages = list(found["settings"]["languages"])
    parts = [*_funnel(root)]
    parts += _rules(predicates)
    presets = counting.known_presets(root)
    for preset in presets:
        parts += _rules(counting.count(root, preset))
    for group, signals in numeric_signals(root).items():
        parts += _group(root, group, signals, languages, presets)
    template = Template(TEMPLATE.read_text("utf-8"))
    return template.substitute(title=escape(found["name"]), body="\n".join(parts))


def _funnel(root: Path) -> Iterator[str]:
    yield "<h2>From records to documents</h2>"
    yield table(
        ("step", "documents", "MB", ""),
        (
            (
                row["step"],
                f"{row['documents']:,}",
                "" if row["bytes"] is None else f"{row['bytes'] / 1e6:,.1f}",
                row["note"],
            )
            for row in funnel(root)
        ),
    )


def _rules(found: Iterable[counting.Rules]) -> Iterator[str]:
    for rules in found:
        share = rules.passes / max(1, rules.judged)
        yield f"<h2>{escape(rules.title)}</h2>"
        yield f"<p>{rules.judged:,} documents are judged, {share:.1%} pass.</p>"
        order = [i for i in np.argsort(-rules.fails, kind="stable") if rules.fails[i]]
        yield table(
            ("rule", "fails", "", "only it fails", "", "most of them fail too"),
            (
                (
                    rules.signals[i],
                    f"{rules.fails[i]:,}",
                    f"{rules.fails[i] / rules.judged:.1%}",
                    f"{rules.only[i]:,}",
                    f"{rules.only[i] / rules.judged:.1%}",
                    f"{near[0]} ({near[1]:.0%})" if (near := rules.nearest(i)) else "",
                )
                for i in order
            ),
        )
        if silent := rules.silent():
            yield f"<p>Fail nothing: {escape(', '.join(silent))}.</p>"
        yield from _overlap(rules, order)


def _overlap(rules: counting.Rules, order: Sequence[int]) -> Iterator[str]:
    """Of the documents that the rule of a line fails, the share that each other one fails too."""
    if len(order) > 1:
        yield "<details><summary>% of a line that the rule of a column fails too</summary>"
        yield table(
            ("", "rule", *(str(n) for n in range(1, len(order) + 1))),
            (
                (
                    str(n),
                    rules.signals[i],
                    *(f"{100 * rules.both[i, j] / rules.fails[i]:.0f}" for j in order),
                )
                for n, i in enumerate(order, 1)
            ),
        )
        yield "</details>"


def rules_of(group: str, presets: Iterable[str]) -> Iterator[tuple[str, Rule]]:
    """(preset, rule) of every rule whose signal stands in a group; those of our own presets also
    where not all of their groups were measured, for each cut stands by itself. A rule for some
    documents only is no threshold of all."""
    for preset in dict.fromkeys((*presets, *OWN)):
        for rule in PRESETS[preset]:
            signal_group, _, column = rule.signal.partition(".")
            if (signal_group if column else "language") == group and not rule.where:
                yield preset, rule


def thresholds(rules: Iterable[tuple[str, Rule]], name: str, language: str) -> Thresholds:
    """(what to call it, bound) of the rules on a value for a language, kinds of Chinese too."""
    found = []
    for preset, rule in rules:
        for key, bound in rule.bounds.items() if rule.name == name else ():
            if key.split("-")[0] == language:
                variant = key.partition("-")[2]
                called = f"{preset}, {variant}" if variant else preset
                edges = (bound.minimum, bound.maximum)
                found += [(called, edge) for edge in edges if edge is not None]
    return found


def _group(
    root: Path, group: str, signals: list[str], languages: list[str], presets: list[str]
) -> Iterator[str]:
    rules = list(rules_of(group, presets))
    values = {name: name for name in signals} | {r.name: r.value for _, r in rules if r.per}
    found = histograms(root, values, languages)
    marks = {(h.signal, h.language): thresholds(rules, h.signal, h.language) for h in found}
    wanted = {
        Bound(language, values[name], edge): None
        for (name, language), edges in marks.items()
        for _, edge in edges
    }
    close = nearest(root, list(wanted))
    for name in values:
        yield f"<h2>{escape(name)}</h2>"
        for histogram in (h for h in found if h.signal == name):
            edges = marks[name, histogram.language]
            yield '<div class="signal">'
            yield chart(histogram, edges)
            for edge in dict.fromkeys(edge for _, edge in edges):
                called = "; ".join(preset for preset, other in edges if other == edge)
                rows = close[Bound(histogram.language, values[name], edge)]
                yield f"<details><summary>closest to {edge:g} ({escape(called)})</summary>"
                yield table(
                    ("document", "source", "value", "it begins"),
                    ((r["id"][:12], r["source"], f"{r['value']:.4g}", r["head"]) for r in rows),
                )
                yield "</details>"
            yield "</div>"


def chart(histogram: Histogram, bounds: Sequence[tuple[str, float]]) -> str:
    """Bars by source, one on another, and a line at each threshold, as inline SVG."""
    sources = list(histogram.counts)
    layers = [(source, histogram.counts[source]) for source in sources[:MOST_SOURCES]]
    if len(sources) > MOST_SOURCES:
        rest = [histogram.counts[source] for source in sources[MOST_SOURCES - 1 :]]
        layers[-1] = (OTHERS, np.sum(rest, axis=0))
    total = np.sum([counts for _, counts in layers], axis=0)
    highest = max(1, int(np.max(total)))
    step = WIDTH / BINS
    marks = []
    base = np.zeros(BINS)
    for (_, counts), colour in zip(layers, COLOURS, strict=False):
        for at in np.flatnonzero(counts).tolist():
            height = counts[at] / highest * HEIGHT
            top = HEIGHT - base[at] - height
            marks.append(
                f'<rect x="{at * step:.1f}" y="{top:.2f}" width="{step - 0.5:.1f}" '
                f'height="{height:.2f}" fill="{colour}"/>'
            )
        base += counts / highest * HEIGHT
    span = histogram.high - histogram.low
    for preset, value in bounds:
        x = min(max((value - histogram.low) / span, 0), 1) * WIDTH
        marks.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT}" class="bound">'
            f"<title>{escape(preset)}: {value:g}</title></line>"
        )
    keys = " ".join(
        f'<span class="key"><i style="background:{colour}"></i>{escape(source)}'
        f"{_median(histogram, source)}</span>"
        for (source, _), colour in zip(layers, COLOURS, strict=False)
    )
    return (
        f"<p><b>{escape(histogram.language)}</b> {int(np.sum(total)):,} documents</p>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 14}" role="img">{"".join(marks)}'
        f'<text x="0" y="{HEIGHT + 12}">{histogram.low:.4g}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 12}" text-anchor="end">{histogram.high:.4g}</text></svg>'
        f"<p>{keys}</p>"
    )


def _median(histogram: Histogram, source: str) -> str:
    return f" (median {histogram.median[source]:.4g})" if source in histogram.median else ""


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """An HTML table; every cell is escaped."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines
    )
    return f'<div class="wide"><table><tr>{head}</tr>\n{body}</table></div>'
