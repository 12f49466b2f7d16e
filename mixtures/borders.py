"""Where in a window what a token may see begins anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixtures.part import Row


def divided(row: Row, forgotten: frozenset[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Where in a window a document begins that does not see what is before it, 0 first, and the id
    (V16) of each.

    Each token of padding and of a forgotten document is alone, so that no loss counts and nothing
    looks at it.
    """
    starts, names = row.starts, row.ids
    if not forgotten and not row.is_padded and row.follows is None:
        return starts, names  # as nearly all are: this costs a third of a batch if it is slow
    gone = np.array([name.tobytes() in forgotten for name in names] if forgotten else [], bool)
    if not gone.any() and not row.is_padded and row.follows is None:
        return starts, names
    borders = np.zeros(len(row.tokens), bool)
    borders[starts] = True
    if row.follows is not None:
        borders[starts[row.follows]] = False
    if not len(gone):
        gone = np.zeros(len(names), bool)
    gone[-1] |= row.is_padded
    ends = np.append(starts[1:], len(borders))
    for start, end in zip(starts[gone].tolist(), ends[gone].tolist(), strict=True):
        borders[start : end + 1] = True  # also what is behind it
    borders[0] = True
    at = np.flatnonzero(borders)
    named: np.ndarray = names[np.searchsorted(starts, at, side="right") - 1]
    return at, named


def numbered(starts: Sequence[np.ndarray], width: int) -> np.ndarray:
    """int32 [windows, width]: the number of the document at each place of a window, where `starts`
    are the beginnings of those of each."""
    end = np.array([width], np.int32)
    begins = np.concatenate([piece for begins in starts for piece in (begins, end)])
    lengths = np.maximum(begins[1:] - begins[:-1], 0)  # 0 behind the end of a window
    upwards = np.arange(max(map(len, starts)) + 1, dtype=np.int32)
    numbers = np.concatenate([upwards[: len(begins) + 1] for begins in starts])
    return numbers[:-1].repeat(lengths).reshape(len(starts), width)
