"""Control tokens that a text spells out: how many of them, in each text.

An alternation of DeepSeek's 1,280 costs a regular expression 3 ns a byte. Few texts hold the first
bytes of any, and looking for these costs a tenth: the expression is for those texts.
"""

from __future__ import annotations

import functools
import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kernels.arrow import string_buffers
from kernels.beginnings import spell_beginnings


def count_literals(texts: pa.Array, literals: tuple[str, ...]) -> npt.NDArray[np.int32]:
    """How many of `literals`, longest first, stand in each text; none overlap."""
    counts = np.zeros(len(texts), np.int32)
    rows = np.flatnonzero(may_hold(texts, literals))
    if len(rows):
        some = texts.take(pa.array(rows))
        counts[rows] = np.asarray(pc.count_substring_regex(some, _prepared(literals)[0]))
    return counts


def may_hold(texts: pa.Array, literals: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Which texts hold what looks like the beginning of a literal; all that hold a whole one do."""
    data, offsets = string_buffers(texts)
    return spell_beginnings(data, offsets, _prepared(literals)[1])


@functools.lru_cache(maxsize=4)  # tokenizers of a corpus
def _prepared(literals: tuple[str, ...]) -> tuple[str, npt.NDArray[np.bool_]]:
    """The expression that finds them, and [place, byte]: does one of them have that byte there?"""
    data = [literal.encode() for literal in literals]
    width = min([8, *map(len, data)])
    allowed = np.zeros((width, 256), np.bool_)
    for i in range(width):
        allowed[i, [d[i] for d in data]] = True
    return "|".join(map(re.escape, literals)), allowed
