"""Signal group and editor `boilerplate`: the lines of a page that filters/chrome.py takes.

Only a line that holds a key of a rule (filters/chrome_keys.py) goes to the patterns. The edit takes
away the whole line with its line feed. Code has no page around it: of `kind: code` no line is taken
(a licence header is a matter of its own).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from filters.chrome import FOOT_LINES, HEAD_LINES, RULES, folded, takes
from filters.chrome_keys import Masks, rules_by_line
from filters.columns import Signal
from filters.edits import Edits, edits_of, whole_lines
from filters.evidence import MOST
from filters.names import Offsets
from filters.pieces import Pieces
from filters.segments import Texts

EVIDENCE_CHARS = 60
COLUMNS: dict[str, Signal] = {
    "char_share": Signal(
        pa.float32(), "characters of lines", "under lines that a rule of chrome.py takes", "assay"
    ),
    "num_lines": Signal(pa.int32(), "lines", "such lines", "assay"),
    **{
        f"num_{name}": Signal(pa.int32(), "lines", f"taken by the rule {name}", "assay")
        for name in RULES
    },
    "lines": Signal(
        pa.list_(pa.string()),
        "lines",
        "the first 8 of them: rule, and the line's beginning",
        "assay",
    ),
}
# By place, at an edge or not: the rules that may take a line whatever stands beside, one bit each.
_BITS = {
    at_edge: np.uint32(sum(rule.stands(at_edge) << n for n, rule in enumerate(RULES.values())))
    for at_edge in (False, True)
}


class Line(NamedTuple):
    text: int
    line: int  # in the lines of the batch
    rule: str
    content: str


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    lines = texts.segments.lines
    by_rule = {name: np.zeros(len(texts), np.int32) for name in RULES}
    taken = np.zeros(len(texts), np.int64)
    shown: list[str] = []
    num_shown = np.zeros(len(texts), np.int32)
    for found in chrome_lines(texts, columns["kind"]):
        by_rule[found.rule][found.text] += 1
        taken[found.text] += lines.chars[found.line]
        if num_shown[found.text] < MOST:
            shown.append(f"{found.rule}: {found.content[:EVIDENCE_CHARS]}")
            num_shown[found.text] += 1
    return {
        "char_share": (taken / np.maximum(_all_chars(lines), 1)).astype(np.float32),
        "num_lines": sum(by_rule.values(), np.zeros(len(texts), np.int32)),
        **{f"num_{name}": counts for name, counts in by_rule.items()},
        "lines": pa.ListArray.from_arrays(
            np.concatenate([[0], np.cumsum(num_shown)]).astype(np.int32),
            pa.array(shown, pa.string()),
        ),
    }


def find(texts: Texts, columns: Mapping[str, pa.Array]) -> Edits:
    """The lines as edits; see filters/editors.py."""
    found = list(chrome_lines(texts, columns["kind"]))
    rows = np.array([line.text for line in found], np.int64)
    at = texts.segments.lines.begins[np.array([line.line for line in found], np.int64)]
    starts, ends = whole_lines(texts, rows, at)
    rules, nothing = [line.rule for line in found], [""] * len(found)
    whole = zip(rows.tolist(), starts.tolist(), ends.tolist(), rules, nothing, strict=True)
    return edits_of(whole)


def chrome_lines(texts: Texts, kinds: pa.Array) -> Iterator[Line]:
    """The lines that a rule takes, in order."""
    lines = texts.segments.lines
    masks = rules_by_line(texts.data, lines, np.asarray(pc.equal(kinds, "code")))
    (numbers,) = np.nonzero(masks)
    of_text = np.searchsorted(lines.offsets, numbers, side="right") - 1
    firsts, ends = lines.offsets[of_text], lines.offsets[of_text + 1]
    at_edge = (numbers < firsts + HEAD_LINES) | (numbers >= ends - FOOT_LINES)
    placed = masks[numbers] & np.where(at_edge, _BITS[True], _BITS[False])
    numbers, of_text, placed = numbers[placed > 0], of_text[placed > 0], placed[placed > 0]
    data = texts.data.data
    spans = zip(lines.begins[numbers].tolist(), lines.ends[numbers].tolist(), strict=True)
    found = [str(data[begin:end], "utf-8") for begin, end in spans]
    seen = folded("\n".join(found)).split("\n")[: len(found)]  # at once: ten times as fast
    rows = of_text.tolist(), numbers.tolist(), placed.tolist(), found, seen
    taken = {
        number: Line(text, number, rule, line)
        for text, number, mask, line, as_seen in zip(*rows, strict=True)
        if (rule := _first(mask, as_seen))
    }
    for line in list(taken.values()):
        for step in (-1, 1):
            _follow(texts, line, step, masks, taken)
    yield from map(taken.__getitem__, sorted(taken))


def _follow(texts: Texts, line: Line, step: int, masks: Masks, taken: dict[int, Line]) -> None:
    """From a line that is taken on: those in a row with it, wherever they stand."""
    first, end = texts.segments.lines.offsets[line.text : line.text + 2].tolist()
    number = line.line + step
    while first <= number < end and masks[number] and number not in taken:
        content = _content(texts, number)
        rule = _first(int(masks[number]), folded(content))
        if not rule:
            break
        taken[number] = Line(line.text, number, rule, content)
        number += step


def _content(texts: Texts, number: int) -> str:
    lines = texts.segments.lines
    return str(texts.data.data[lines.begins[number] : lines.ends[number]], "utf-8")


def _first(mask: int, line: str) -> str:
    """The first of the rules of these bits that takes a line, which is folded; "" if none."""
    return next((name for name in _names(mask) if takes(name, line)), "")


@functools.cache
def _names(mask: int) -> list[str]:
    return [name for number, name in enumerate(RULES) if mask >> number & 1]


def _all_chars(lines: Pieces) -> Offsets:
    """Characters of the lines of each text."""
    total = np.concatenate([[0], np.cumsum(lines.chars[: lines.offsets[-1]], dtype=np.int64)])
    found: Offsets = np.diff(total[lines.offsets])
    return found
