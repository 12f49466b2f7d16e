"""Long texts in pieces, with the same ids: bounded memory for a document of 50 MB.

A cut stands between a letter and a mark or line end, and only where the tokens around it are the
same with and without the cut: WINDOW characters on both sides are encoded whole and apart. A rule
that splits text looks a few characters far, so what holds there holds in the whole text. Where no
such place is (one character 200,000 times; a tokenizer that puts a space before each text) the
piece goes on.
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
        for piece in pieces(text.as_py(), engine):
            ids, _ = engine(pa.array([piece], pa.string()))
            rows.append(ids)
            lengths[number + 1] += len(ids)
    return np.concatenate(rows), np.cumsum(lengths)


def pieces(text: str, engine: EncodeText, size: int = PIECE_CHARS) -> Iterator[str]:
    """A text in pieces of about `size` characters; what they encode to is what it does."""
    begin = 0
    while (end := _next_cut(text, begin + size, engine)) is not None:
        yield text[begin:end]
        begin = end
    yield text[begin:]


def _next_cut(text: str, at: int, engine: EncodeText) -> int | None:
    while at < len(text):
        last = None
        for match in itertools.islice(_CUT.finditer(text, at), TRIES):
            last = match.start()
            if _is_safe(text, last, engine):
                return last
        if last is None:
            return None
        at = last + LOOK
    return None


def _is_safe(text: str, at: int, engine: EncodeText) -> bool:
    before, after = text[max(0, at - WINDOW) : at], text[at : at + WINDOW]
    ids, offsets = engine(pa.array([before + after, before, after], pa.string()))
    return np.array_equal(ids[: offsets[1]], ids[offsets[1] :])
