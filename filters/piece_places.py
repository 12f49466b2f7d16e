"""Where lines and paragraphs stand, as what an edit would take away: whole lines with their line
feeds, and the blank lines around them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from filters.names import Offsets
from filters.pieces import Pieces
from filters.segments import Texts
from kernels.compile import kernel
from kernels.hashing import Bytes

_LINE_FEED = 10


class Places(NamedTuple):
    """Bytes of a text, from its beginning; `before` and `after` count bytes of blank lines."""

    starts: Offsets
    ends: Offsets
    before: Offsets
    after: Offsets


def places(texts: Texts, pieces: Pieces) -> Places:
    """Of all lines or paragraphs of some texts."""
    found = np.empty((4, pieces.offsets[-1]), np.int64)
    _place(texts.data, texts.offsets, pieces.offsets, pieces.begins, pieces.ends, found)
    return Places(*found)


@kernel
def _place(
    data: Bytes, texts: Offsets, offsets: Offsets, begins: Offsets, ends: Offsets, found: Offsets
) -> None:
    """What stands between two pieces is white space."""
    for text in range(len(texts) - 1):
        first, last = texts[text], texts[text + 1]
        stop = first
        for piece in range(offsets[text], offsets[text + 1]):
            start, end = begins[piece], ends[piece]
            while start > stop and data[start - 1] != _LINE_FEED:
                start -= 1
            while end < last and data[end] != _LINE_FEED:
                end += 1
            end = min(end + 1, last)
            found[0, piece], found[1, piece] = start - first, end - first
            found[2, piece] = start - stop
            if piece > offsets[text]:
                found[3, piece - 1] = start - stop
            stop = end
        if offsets[text + 1] > offsets[text]:
            found[3, offsets[text + 1] - 1] = last - stop
