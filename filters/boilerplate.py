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

from filters.chrome import RULES, folded, takes
from filters.chrome_keys import rules_by_line
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
    skipped = np.asarray(pc.equal(kinds, "code"))
    masks = rules_by_line(texts.data, lines, skipped)
    (numbers,) = np.nonzero(masks)
    of_text = np.searchsorted(lines.offsets, numbers, side="right") - 1
    spans = zip(lines.begins[numbers].tolist(), lines.ends[numbers].tolist(), strict=True)
    data = texts.data.data
    found = [str(data[begin:end], "utf-8") for begin, end in spans]
    seen = folded("\n".join(found)).split("\n")[: len(found)]  # at once: ten times as fast
    rows = of_text.tolist(), numbers.tolist(), masks[numbers].tolist(), found, seen
    for text, number, mask, line, as_seen in zip(*rows, strict=True):
        for name in _names(mask):
            if takes(name, as_seen):
                yield Line(text, number, name, line)
                break


@functools.cache
def _names(mask: int) -> list[str]:
    return [name for number, name in enumerate(RULES) if mask >> number & 1]


def _all_chars(lines: Pieces) -> Offsets:
    """Characters of the lines of each text."""
    total = np.concatenate([[0], np.cumsum(lines.chars[: lines.offsets[-1]], dtype=np.int64)])
    found: Offsets = np.diff(total[lines.offsets])
    return found
