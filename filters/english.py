"""Words that show English: a third of its prose, and next to nothing of other languages.

A text of few words, or one in a Latin script beside Chinese, is where lid.176 errs; such words do
not. Written for this project, without words that another large language writes too (in, on, was,
we, at, do, come).
"""

from __future__ import annotations

import functools

import numpy as np

from filters import text
from filters.names import Keys
from filters.wordruns import word_hash
from kernels.compile import kernel
from kernels.hashing import Bytes

FUNCTION_WORDS = frozenset(
    "the of and to is for that this these those with from they them their there it its it's you "
    "your are aren't were have haven't has hasn't been which who what when where why how would "
    "could should can can't cannot don't didn't doesn't isn't wasn't won't i'm i'll i've you're "
    "we're they're that's if but than then about into she his him our us just now out up going "
    "go get got know want think said only also more other some any each because while after "
    "before between through without within".split()
)
_SLOTS = 1517  # the first number from 1,500 on for which no two words share a slot


@functools.cache
def table() -> Keys:
    """At its hash modulo _SLOTS the hash of each word."""
    hashes = np.zeros(_SLOTS, np.uint64)
    for word in FUNCTION_WORDS:
        value = word_hash(word)
        assert hashes[value % _SLOTS] == 0, f"{word!r} collides with another; change _SLOTS"
        hashes[value % _SLOTS] = value
    return hashes


@kernel
def mark(vocabulary: Keys, begin: int, end: int, words: Keys, flags: Bytes) -> None:
    """`flags[i]`: whether `vocabulary[begin + i]` is one of `words`, a `table()`."""
    for i in range(begin, end):
        flags[i - begin] = words[vocabulary[i] % np.uint64(_SLOTS)] == vocabulary[i]


def share(string: str) -> tuple[int, int]:
    """Function words of a text, and all its words."""
    words = [word.lower().replace("’", "'") for word in text.words(string)]
    return sum(word in FUNCTION_WORDS for word in words), len(words)
