"""Long texts in pieces, with the same ids: bounded memory for a document of 50 MB.

A cut stands between a letter and a mark or line end, and only where the tokens around it are the
same with and without the cut: WINDOW characters on both sides are encoded whole and apart. A rule
that splits text looks a few characters far, so what holds there holds in the whole text. Where no
such place is (one character 200,000 times) the piece goes on. A tokenizer that puts a space before
each text puts one before each piece: where that is a token of its own, it is taken off again.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

LONG_BYTES = 4_000_000  # of a text that is cut
PIECE_CHARS = 1_000_000
WINDOW = 1_000
TRIES = 8  # cuts, before LOOK characters are skipped
LOOK = 100_000
_CUT = re.compile(r"(?<=[^\W\d_])(?=[.,;:!?。，；：！？、）\n])")

Encoded = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]
EncodeText = Callable[[pa.Array], Encoded]


def encode(texts: pa.Array, engine: EncodeText) -> Encoded:
    """Ids of all texts in one row, and where each begins, as `engine` gives them for whole ones."""
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest < LONG_BYTES:
        return engine(texts)
    rows, lengths = [], np.zeros(len(texts) + 1, np.int64)
    for number, text in enumerate(texts):
        for piece, added in pieces(text.as_py(), engine):
            ids, _ = engine(pa.array([piece], pa.string()))
            rows.append(ids[added:])
            lengths[number + 1] += len(ids) - added
    return np.concatenate(rows), np.cumsum(lengths)


def pieces(text: str, engine: EncodeText, size: int = PIECE_CHARS) -> Iterator[tuple[str, int]]:
    """A text in pieces of about `size` characters, and how many of the first ids of each are not
    the text's; what is left is what it encodes to."""
    begin = added = 0
    while (cut := _next_cut(text, begin + size, engine)) is not None:
        end, next_added = cut
        yield text[begin:end], added
        begin, added = end, next_added
    yield text[begin:], added


def _next_cut(text: str, at: int, engine: EncodeText) -> tuple[int, int] | None:
    """Where, and the ids that are added behind it."""
    while at < len(text):
        last = None
        for match in itertools.islice(_CUT.finditer(text, at), TRIES):
            last = match.start()
            if (added := _added(text, last, engine)) is not None:
                return last, added
        if last is None:
            return None
        at = last + LOOK
    return None


def _added(text: str, at: int, engine: EncodeText) -> int | None:
    """Ids at the begin of what stands behind a cut that it does not have in the whole text, 0 or 1;
    None: others differ too."""
    before, after = text[max(0, at - WINDOW) : at], text[at : at + WINDOW]
    ids, offsets = engine(pa.array([before + after, before, after], pa.string()))
    whole, first, second = np.split(ids, offsets[1:3])
    for added in (0, 1):
        if np.array_equal(whole, np.concatenate([first, second[added:]])):
            return added
    return None
