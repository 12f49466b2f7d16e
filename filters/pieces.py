"""The arrays that filters/segments.py fills: words, lines, paragraphs and counts of a batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from filters.names import Keys, Offsets, Positions, longest, table_for
from filters.wordruns import Words
from kernels.compile import kernel
from kernels.hashing import Bytes


class Pieces(NamedTuple):
    """Lines or paragraphs, stripped; those of text `i` are `offsets[i]:offsets[i + 1]`."""

    offsets: Offsets
    begins: Offsets  # of bytes in `Texts.data`
    ends: Offsets
    chars: Positions
    hashes: Keys  # `span_hash`
    words: Positions
    sentences: Positions
    long_words: Positions  # words of more than LONG_WORD characters


class Counts(NamedTuple):
    """Of each text."""

    letter_words: Positions  # words with a letter
    newlines: Positions
    hash_marks: Positions  # # and ＃
    ellipses: Positions  # runs of …, and of at least three . or 。


class Segments(NamedTuple):
    words: Words
    lines: Pieces
    paragraphs: Pieces
    counts: Counts


def room(data: Bytes, offsets: Offsets) -> tuple[Words, Pieces, Pieces, Counts, Positions]:
    """Arrays of the largest size that may be needed. They are memory only as far as they are used,
    and never replaced in a loop: that would cost a locked count each time. Made here and not in a
    kernel, for numpy asks for large pages: of small ones each new one costs two microseconds.
    """
    num_texts = len(offsets) - 1
    num_lines = num_texts + _num_newlines(data, offsets)
    num_words = int(offsets[-1] - offsets[0] + num_texts) // 2 + 1  # "a a a"
    return (
        Words(
            np.zeros(num_texts + 1, np.int64),
            np.empty(num_words, np.int32),
            np.empty(num_words, np.int32),
            np.zeros(num_texts + 1, np.int64),
            np.empty(num_words, np.uint64),
        ),
        _pieces(num_texts, num_lines),
        _pieces(num_texts, num_lines),
        Counts(*(np.empty(num_texts, np.int32) for _ in Counts._fields)),
        table_for((longest(offsets) + 1) // 2),
    )


@kernel
def _num_newlines(data: Bytes, offsets: Offsets) -> int:
    found = 0
    for at in range(offsets[0], offsets[-1]):
        found += data[at] == 10
    return found


def _pieces(num_texts: int, bound: int) -> Pieces:
    return Pieces(
        np.zeros(num_texts + 1, np.int64),
        np.empty(bound, np.int64),
        np.empty(bound, np.int64),
        np.empty(bound, np.int32),
        np.empty(bound, np.uint64),
        np.empty(bound, np.int32),
        np.empty(bound, np.int32),
        np.empty(bound, np.int32),
    )
