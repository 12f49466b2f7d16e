"""Edits: what a rule would change in a text, as measurements. No stored text is ever changed.

An edit is a range of a text's UTF-8 bytes, and what would stand there instead. A rule that changes
text is a function from texts to `Edits` (the table of them: filters/editors.py); a mixture names
the rules whose edits it applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kernels.arrow import string_buffers

if TYPE_CHECKING:
    from filters.segments import Texts  # loads numba: 0.5 s, and who applies edits needs none

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Edits:
    """Edits of a batch, ordered by text and by byte; all five are equally long. `fault` says what
    must hold of them."""

    rows: Numbers  # which text of the batch
    starts: Numbers  # first byte that goes, counted from the beginning of the text
    ends: Numbers  # the byte after the last one
    kinds: pa.Array  # strings: email, phone ...
    replacements: pa.Array  # strings: what stands there then; often nothing

    def __len__(self) -> int:
        return len(self.rows)


def edits_of(found: Iterable[tuple[int, int, int, str, str]]) -> Edits:
    """Edits from (row, start, end, kind, replacement), in any order."""
    table = sorted(found)
    rows, starts, ends = (np.array([edit[i] for edit in table], np.int64) for i in range(3))
    kinds, replacements = (pa.array([edit[i] for edit in table], pa.string()) for i in (3, 4))
    return Edits(rows, starts, ends, kinds, replacements)


def whole_lines(texts: Texts, rows: Numbers, at: Numbers) -> tuple[Numbers, Numbers]:
    """The lines of some texts in which bytes `at` of `texts.data` stand, each with its line feed:
    where they start and end, counted from the beginning of their text."""
    feeds = np.flatnonzero(texts.data == 10)
    after = np.searchsorted(feeds, at)
    before = np.append(-1, feeds)[after] + 1
    next_one = np.append(feeds, len(texts.data))[after] + 1
    begins, ends = texts.offsets[rows], texts.offsets[rows + 1]
    return np.maximum(before, begins) - begins, np.minimum(next_one, ends) - begins


def fault(texts: Texts, edits: Edits) -> str:
    """What is wrong with the edits of these texts; "" where nothing is.

    Rows ascend; a range holds a byte or more, lies within its text, begins and ends on borders of
    characters, and begins where the one before it ends or later.
    """
    if not len(edits):
        return ""
    rows, starts, ends = edits.rows, edits.starts, edits.ends
    if rows[0] < 0 or rows[-1] >= len(texts) or (np.diff(rows) < 0).any():
        return f"rows must ascend within 0 to {len(texts) - 1}"
    begins, lengths = texts.offsets[rows], np.diff(texts.offsets)[rows]
    outside = (starts < 0) | (starts >= ends) | (ends > lengths)
    borders = np.where(outside, 0, starts), np.where(outside | (ends == lengths), 0, ends)
    inside = [
        texts.data[np.minimum(begins + at, len(texts.data) - 1)] & 0xC0 == 0x80 for at in borders
    ]
    again = np.append(False, (np.diff(rows) == 0) & (starts[1:] < ends[:-1]))
    wrongs = {
        "holds no byte, or lies outside of the text": outside,
        "begins before the one before it ends": again,
        "begins or ends inside a character": inside[0] | inside[1],
    }
    for what, wrong in wrongs.items():
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            where = f"text {rows[at]}, bytes {starts[at]} to {ends[at]} of {lengths[at]}"
            return f"edit {edits.kinds[at]} of {where} {what}"
    return ""


def merged(several: Sequence[Edits]) -> Edits:
    """The edits of several rules as those of one.

    Edits that overlap become one, from the first byte of any to the last of any: what one of them
    takes away is gone. Its kind and replacement are those of the rule that stands first in
    `several`, and within one rule of the edit that begins first.
    """
    rows, starts, ends = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(edits, name) for edits in several)])
        for name in ("rows", "starts", "ends")
    )
    rank = np.repeat(np.arange(len(several)), [len(edits) for edits in several])
    order = np.lexsort((rank, starts, rows))
    rows, starts, ends, rank = rows[order], starts[order], ends[order], rank[order]
    reach = _running_end(rows, ends)
    new = np.append(True, (np.diff(rows) != 0) | (starts[1:] >= reach[:-1]))[: len(rows)]
    group = np.cumsum(new) - 1
    (firsts,) = np.nonzero(new)
    lasts = np.append(firsts[1:], len(rows))[: len(firsts)] - 1
    best = np.lexsort((starts, rank, group))[firsts]  # the first of each group in that order
    texts = {
        name: pa.concat_arrays(
            [pa.array([], pa.string()), *(getattr(edits, name) for edits in several)]
        ).take(pa.array(order[best]))
        for name in ("kinds", "replacements")
    }
    return Edits(rows[firsts], starts[firsts], reach[lasts], texts["kinds"], texts["replacements"])


def _running_end(rows: Numbers, ends: Numbers) -> Numbers:
    """The largest end of a text up to each of its edits."""
    base = rows * (int(ends.max(initial=0)) + 1)  # a later text begins above all ends before it
    reach: Numbers = np.maximum.accumulate(base + ends) - base
    return reach


def applied(texts: pa.Array, edits: Edits) -> pa.Array:
    """The texts with their edits made; texts without edits as they are."""
    data, offsets = string_buffers(texts)
    view = data.data
    borders = np.searchsorted(edits.rows, np.arange(len(texts) + 1)).tolist()
    starts, ends = edits.starts.tolist(), edits.ends.tolist()
    replacements = [text.encode() for text in edits.replacements.to_pylist()]
    made = []
    for row, (begin, end) in enumerate(
        zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    ):
        pieces: list[bytes | memoryview] = []
        at = begin
        for edit in range(borders[row], borders[row + 1]):
            pieces += view[at : begin + starts[edit]], replacements[edit]
            at = begin + ends[edit]
        made.append(b"".join([*pieces, view[at:end]]))
    return pa.array(made, pa.large_binary()).cast(pa.large_string()).cast(texts.type)
