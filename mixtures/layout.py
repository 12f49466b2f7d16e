"""How the documents of a part lie in its windows: the policies, and what each costs.

A part is one row of ids, its documents one behind the other. A policy says which stretches of the
row stand where in which window; a window has `sequence_length + 1` ids.

concat    the row is cut every `sequence_length` ids; the last id of a window is the first of the
          next. No padding; what is left at the end of a part is its remainder. Cuts documents.
best_fit  no document is cut unless it is longer than a window: then it fills whole windows, which
          share one id, and its rest is packed like a document. Each goes into the fullest window
          that it fits, the longest first (Ding et al. 2024, "Fewer Truncations Improve Language
          Modeling", 2404.10830). No remainder; padding where nothing fits.
buckets   as concat, but documents stand in the order of their length by powers of two, so that a
          window holds documents of similar length (Pouransari et al. 2024, "Dataset
          Decomposition", 2405.13226, which cuts documents into powers of two; here they stay).

What is packed as one is a unit: a document, or the members of a group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixtures.packed import Loss

PADDING = -1  # the number of no document


@dataclass(frozen=True)
class Chunks:
    """Stretches of the row, each in one window; int64 columns, by window and place."""

    begin: np.ndarray  # in the row
    length: np.ndarray
    window: np.ndarray
    place: np.ndarray  # in the window


@dataclass(frozen=True)
class Layout:
    """What stands in the windows of a part; int64 columns, by window and place."""

    num_windows: int
    document: np.ndarray  # its number in the row; or PADDING
    begin: np.ndarray  # in the row
    length: np.ndarray
    window: np.ndarray
    place: np.ndarray  # in the window


def num_windows(num_tokens: int, sequence_length: int) -> int:
    """Windows of a row that is cut: each consumes `sequence_length` ids, and the last one needs one
    more."""
    return max(0, num_tokens - 1) // sequence_length


def _concat(units: np.ndarray, length: int) -> Chunks:
    window = np.arange(num_windows(int(units.sum()), length))
    return Chunks(window * length, np.full(len(window), length + 1), window, np.zeros_like(window))


def _best_fit(units: np.ndarray, length: int) -> Chunks:
    from kernels.bins import best_fit  # loads numba: 0.5 s, for this policy alone

    begins = np.cumsum(units) - units
    num_full = np.maximum(units - 1, 0) // length  # a window more needs one id beyond the last one
    whole = np.repeat(np.arange(len(units)), num_full)
    turn = np.arange(len(whole)) - np.repeat(np.cumsum(num_full) - num_full, num_full)
    rest = units - num_full * length
    (left,) = np.nonzero((rest > 1) | (num_full == 0))  # one id is the last of a full window
    sizes = rest[left]
    longest = np.argsort(-sizes, kind="stable")
    bins = np.empty(len(left), np.int64)
    bins[longest] = best_fit(sizes[longest], length + 1)

    # windows in the order of their first unit
    _, firsts = np.unique(bins, return_index=True)
    first_unit = np.append(whole, left[firsts])
    order = np.lexsort((np.append(turn, num_full[left[firsts]]), first_unit))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    window = number[np.append(np.arange(len(whole)), len(whole) + bins)]
    begin = np.append(begins[whole] + turn * length, begins[left] + num_full[left] * length)
    lengths = np.append(np.full(len(whole), length + 1), sizes)
    by_window = np.argsort(window, kind="stable")  # in one, units stay in their order
    begin, lengths, window = begin[by_window], lengths[by_window], window[by_window]
    ends = np.cumsum(lengths)
    is_first = np.append(True, window[1:] != window[:-1])[: len(window)]
    place = ends - lengths - np.repeat((ends - lengths)[is_first], np.bincount(window))
    return Chunks(begin, lengths, window, place)


POLICIES: dict[str, Callable[[np.ndarray, int], Chunks]] = {
    "concat": _concat,
    "best_fit": _best_fit,
    "buckets": _concat,
}


def ordered(policy: str, units: np.ndarray) -> np.ndarray:
    """The order of units in the row, of their numbers of tokens."""
    if policy != "buckets":
        return np.arange(len(units))
    return np.argsort(np.frexp(units.astype(np.float64))[1], kind="stable")  # exact to 2**53


def lay_out(policy: str, lengths: np.ndarray, units: np.ndarray, sequence_length: int) -> Layout:
    """The layout of a row.

    Args:
        lengths: tokens of each document in the row, at least 1; int64.
        units: how many documents each unit has; int64.
    """
    ends = np.cumsum(lengths)
    begins = ends - lengths
    tokens = np.add.reduceat(lengths, np.cumsum(units) - units) if len(units) else lengths
    chunks = POLICIES[policy](tokens, sequence_length)
    chunk_ends = chunks.begin + chunks.length
    first = np.searchsorted(begins, chunks.begin, side="right") - 1
    counts = np.searchsorted(begins, chunk_ends, side="left") - first
    offsets = np.cumsum(counts) - counts
    document = np.arange(int(counts.sum())) + np.repeat(first - offsets, counts)
    at, shift = np.repeat(chunks.begin, counts), np.repeat(chunks.place - chunks.begin, counts)
    begin = np.maximum(begins[document], at)
    length = np.minimum(ends[document], np.repeat(chunk_ends, counts)) - begin
    window = np.repeat(chunks.window, counts)
    num = int(window[-1]) + 1 if len(window) else 0
    layout = Layout(num, document, begin, length, window, begin + shift)
    return _padded(layout, sequence_length + 1)


def _padded(layout: Layout, width: int) -> Layout:
    filled = np.zeros(layout.num_windows, np.int64)
    np.add.at(filled, layout.window, layout.length)
    (short,) = np.nonzero(filled < width)
    after = np.searchsorted(layout.window, short, side="right")
    return Layout(
        layout.num_windows,
        np.insert(layout.document, after, PADDING),
        np.insert(layout.begin, after, 0),
        np.insert(layout.length, after, width - filled[short]),
        np.insert(layout.window, after, short),
        np.insert(layout.place, after, filled[short]),
    )


def measured(layout: Layout, lengths: np.ndarray, width: int) -> tuple[int, Loss]:
    """Tokens that stand in windows, each counted once, and what the layout costs."""
    real = layout.document != PADDING
    document, length = layout.document[real], layout.length[real]
    inside = layout.begin[real] - (np.cumsum(lengths) - lengths)[document]
    longest, reached = np.zeros((2, len(lengths)), np.int64)
    np.maximum.at(longest, document, length)
    np.maximum.at(reached, document, inside + length)
    is_cut = (longest < lengths) & (reached > 0)
    return int(reached.sum()), Loss(
        padding=int(layout.length[~real].sum()),
        cut=int(is_cut.sum()),
        cut_short=int((is_cut & (lengths <= width)).sum()),
        headless=int((length - 1)[inside > 0].sum()),
    )
