"""Charts as inline SVG: plain functions from numbers to markup, no library, no script.

Text inside a chart inherits the page's font, so Chinese names show wherever the page shows them.
A chart scales with the page (viewBox); its units are CSS pixels at full width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#4c5a6b", "#c2571a", "#1f7a5c", "#7a4fa3", "#b08900", "#2a6fb0")  # baseline first
WIDTH = 760
LEFT, RIGHT, BOTTOM = 64, 16, 42  # margins of a curve chart
ROW = 48  # height of a row of the interval chart

Scale = Callable[[float], float]  # a value to its place


@dataclass(frozen=True)
class Curve:
    """Mean over seeds and the range from the lowest to the highest seed."""

    x: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Interval:
    name: str
    estimate: float
    low: float | None
    high: float | None
    emphasis: bool = False


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers between `low` and `high`."""
    if high <= low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value: float) -> str:
    """A short label: 2M, 400k, 0.05."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:.4g}".replace("-", "−")


def curves(
    series: Mapping[str, Curve], x_label: str, y_label: str, height: int = 320, skip: float = 0.1
) -> str:
    """Lines with bands. The vertical axis leaves out the first `skip` of each line, in which the
    loss falls from log(vocabulary) and would flatten all that follows."""
    right = max(curve.x[-1] for curve in series.values())
    kept = [
        value
        for curve in series.values()
        for x, *values in zip(curve.x, curve.low, curve.high, strict=True)
        if x >= skip * right
        for value in values
    ]
    bottom, top = min(kept), max(kept)
    margin = (top - bottom) * 0.06 or 0.05
    bottom, top = bottom - margin, top + margin
    inner_w, inner_h = WIDTH - LEFT - RIGHT, height - BOTTOM - 12

    def px(x: float) -> float:
        return LEFT + inner_w * x / right

    def py(y: float) -> float:
        return 12 + inner_h * (top - y) / (top - bottom)

    parts = [_open(WIDTH, height, f"{y_label} by {x_label}")]
    parts.append(
        f'<clipPath id="plot"><rect x="{LEFT}" y="12" width="{inner_w}" height="{inner_h}"/>'
        "</clipPath>"
    )
    for y in ticks(bottom, top):
        parts.append(_line(LEFT, py(y), WIDTH - RIGHT, py(y), "grid"))
        parts.append(_text(LEFT - 8, py(y) + 4, number(y), "end"))
    for x in ticks(0, right):
        parts.append(_text(px(x), height - BOTTOM + 18, number(x), "middle"))
    parts.append(_text(LEFT + inner_w / 2, height - 4, x_label, "middle"))
    parts.append('<g clip-path="url(#plot)">')
    for colour, curve in zip(_colours(), series.values(), strict=False):
        edge = [*zip(curve.x, curve.high, strict=True)]
        edge += reversed([*zip(curve.x, curve.low, strict=True)])
        parts.append(
            f'<polygon points="{_points(edge, px, py)}" fill="{colour}" fill-opacity=".16"/>'
        )
        line = _points([*zip(curve.x, curve.mean, strict=True)], px, py)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return "".join([*parts, "</g></svg>"])


def intervals(rows: Sequence[Interval], x_label: str) -> str:
    """Differences with their intervals around a line at zero; names stand above their bars."""
    values = [0.0] + [v for r in rows for v in (r.low, r.high, r.estimate) if v is not None]
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or 0.01
    low, high = low - margin, high + margin
    height = ROW * len(rows) + 48

    def px(x: float) -> float:
        return 12 + (WIDTH - 24) * (x - low) / (high - low)

    parts = [_open(WIDTH, height, x_label)]
    for x in ticks(low, high):
        parts.append(_line(px(x), 4, px(x), height - 40, "zero" if abs(x) < 1e-12 else "grid"))
        parts.append(_text(px(x), height - 24, number(round(x, 12)), "middle"))
    for index, row in enumerate(rows):
        y = ROW * index + 38.0
        style = "strong" if row.emphasis else "plain"
        if row.low is not None and row.high is not None:
            parts.append(_line(px(row.low), y, px(row.high), y, f"whisker {style}"))
        size = 6 if row.emphasis else 4
        parts.append(f'<circle cx="{px(row.estimate):.1f}" cy="{y:.1f}" r="{size}"/>')
        parts.append(_text(14, y - 13, row.name, "start", f"name {style}"))
    parts.append(_text(WIDTH / 2, height - 4, x_label, "middle"))
    return "".join([*parts, "</svg>"])


def legend(names: Sequence[str]) -> str:
    """Coloured names, in the colours of `curves`."""
    return "".join(
        f'<span class="key"><i style="background:{colour}"></i>{escape(name)}</span>'
        for colour, name in zip(_colours(), names, strict=False)
    )


def _colours() -> list[str]:
    return list(COLOURS) * 8  # beyond six arms colours repeat


def _open(width: int, height: int, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label, quote=True)}" '
        'xmlns="http://www.w3.org/2000/svg">'
    )


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, style: str = "label") -> str:
    return (
        f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _points(pairs: Iterable[tuple[float, float]], px: Scale, py: Scale) -> str:
    return " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in pairs)
