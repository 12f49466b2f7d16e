"""The blank lines that go with lines and paragraphs that go."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


def with_blank_lines(
    rows: Numbers, starts: Numbers, ends: Numbers, before: Numbers, after: Numbers, sizes: Numbers
) -> tuple[Numbers, Numbers]:
    """Where pieces start and end with the blank lines that would be left double, or at a border of
    the text.

    Of pieces that go one after another, blank lines apart, those between go too, and those behind
    the last where there are some before the first; at the end of the text those before the first.
    Where there are none on either side, those behind the first stay: they part what is left.

    Args:
        rows, starts, ends: of each piece its text, and its bytes in it; in this order.
        before, after: bytes of blank lines around it.
        sizes: of each piece the bytes of its text.
    """
    reach = ends + after
    goes_on = np.zeros(len(rows) + 1, np.bool_)
    goes_on[1:-1] = (rows[1:] == rows[:-1]) & (reach[:-1] >= starts[1:])
    first, last = np.flatnonzero(~goes_on[:-1]), np.flatnonzero(~goes_on[1:])
    above = (before[first] > 0) | (starts[first] == 0)
    below = (after[last] > 0) | (ends[last] == sizes[last])

    start, end = starts.copy(), ends.copy()
    (inner,) = np.nonzero(goes_on[1:])
    run = np.cumsum(~goes_on[:-1]) - 1
    gaps: Numbers = np.cumsum(after > 0)
    num_gap: Numbers = gaps[inner] - (gaps - (after > 0))[first[run[inner]]]
    parts = ~(above | below)[run[inner]] & (num_gap == 1)
    inner = inner[~parts]
    end[inner] = start[inner + 1]
    both = above & below
    to_the_end = both & (reach[last] == sizes[last])
    end[last[both]] = reach[last[both]]
    start[first[to_the_end]] -= before[first[to_the_end]]
    return start, end
