"""Is a phrase of Han characters, found in a text, a word there? 路口交通 holds 口交, but nobody
reads it so: 路口 and 交通 stand across its borders.

Words compete by their frequency in a dictionary (words/han_words.tsv: jieba's, of up to four
characters, simplified). Around the phrase, as far as words reach, the likeliest way to cut the text
into words is looked for twice: among all ways, and among those that do not cut through the phrase.
The phrase is one where the second is as likely as the first. It counts as a word itself, at least
as frequent as the rarest of the dictionary.

A word through which the phrase is cut, is one that
    begins before the phrase's begin and ends inside it, or begins inside it and ends after its end;
    holds the phrase after something that is no word of two or more characters: 林阴道.
A word that begins with the phrase speaks of it (赌博机, 强奸罪), and so does a compound (网络赌博).
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.cache import kept_arrays
from kernels.compile import inner_kernel, kernel, leaf_kernel
from kernels.hashing import HASH_START, mix

Values = npt.NDArray[np.uint32]  # folded characters: filters/symbols.py
Keys = npt.NDArray[np.uint64]
Logs = npt.NDArray[np.float32]

LONGEST = 4  # characters of a word
REACH = LONGEST - 1  # that a word can reach across a border
WORDS = Path(__file__).with_name("words") / "han_words.tsv"


class HanWords(NamedTuple):
    """An open hash table: hash of a word (0: none) -> log of its share of all words; 0 of what is
    no word but begins one, so that a look for longer ones ends early."""

    keys: Keys
    logs: Logs
    rarest: float  # log share of the rarest
    unknown: float  # of a character that is no word: as if it had been seen once


@functools.cache
def han_words() -> HanWords:
    keys, logs, edges = kept_arrays([__file__, WORDS], _table)
    return HanWords(keys, logs, float(edges[0]), float(edges[1]))


def _table() -> tuple[Keys, Logs, npt.NDArray[np.float64]]:
    rows = [line.split("\t") for line in WORDS.read_text(encoding="utf-8").splitlines()]
    counts = np.array([int(count) for _, count in rows])
    logs = np.log(counts / counts.sum()).astype(np.float32)
    known = dict(zip((word for word, _ in rows), logs, strict=True))
    for word, _ in rows:
        for end in range(1, len(word)):
            known.setdefault(word[:end], np.float32(0))
    characters = np.array([[ord(c) for c in word.ljust(LONGEST, "\0")] for word in known])
    keys = np.zeros(1 << (2 * len(known)).bit_length(), np.uint64)
    placed = np.zeros(len(keys), np.float32)
    _fill(keys, placed, characters.astype(np.uint32), np.array(list(known.values())))
    return keys, placed, np.array([logs.min(), -np.log(counts.sum())])


@kernel
def _fill(keys: Keys, placed: Logs, words: npt.NDArray[np.uint32], logs: Logs) -> None:
    for word in range(len(words)):
        value = HASH_START
        for character in words[word]:
            if character:
                value = mix(value, np.uint64(character))
        slot = int(value) & (len(keys) - 1)
        while keys[slot]:
            slot = (slot + 1) & (len(keys) - 1)
        keys[slot] = value
        placed[slot] = logs[word]


@inner_kernel
def _log(words: HanWords, value: np.uint64) -> float:
    """Log share of a word by its hash; 0 of what only begins words, 1 of what does not."""
    slot = int(value) & (len(words.keys) - 1)
    while words.keys[slot]:
        if words.keys[slot] == value:
            return float(words.logs[slot])
        slot = (slot + 1) & (len(words.keys) - 1)
    return 1.0


@leaf_kernel
def is_word(
    words: HanWords, row: Values, length: int, begin: int, end: int, best: npt.NDArray[np.float64]
) -> bool:
    """Is row[begin:end] a word in row[:length]? `best` is room for 2 x (length + 1) numbers."""
    return not _is_cut(words, row, length, begin, end) or _is_likelier(
        words, row, length, begin, end, best
    )


@inner_kernel
def _through(words: HanWords, row: Values, at: int, after: int, begin: int, end: int) -> bool:
    """Is the phrase row[begin:end] cut through by the word row[at:after]?"""
    if at < begin and after >= end:
        return begin - at < 2 or not _is_known(words, row, at, begin)
    return at < begin < after or begin < at < end < after


@leaf_kernel
def _is_cut(words: HanWords, row: Values, length: int, begin: int, end: int) -> bool:
    """Does any word cut through the phrase?"""
    for at in range(max(begin - REACH, 0), end):
        value = HASH_START
        for after in range(at + 1, min(at + LONGEST, length) + 1):
            value = mix(value, np.uint64(row[after - 1]))
            if not (at < begin < after or at < end < after):
                continue
            log = _log(words, value)
            if log > 0.0:
                break
            if log < 0.0 and _through(words, row, at, after, begin, end):
                return True
    return False


@leaf_kernel
def _is_likelier(
    words: HanWords, row: Values, length: int, begin: int, end: int, best: npt.NDArray[np.float64]
) -> bool:
    """Is the likeliest way to cut row[:length] one that does not cut through the phrase?"""
    for at in range(length + 1):
        best[0, at] = best[1, at] = -np.inf
    best[0, 0] = best[1, 0] = 0.0
    for at in range(length):
        if at == begin:
            for way in range(2):
                best[way, end] = max(best[way, end], best[way, at] + words.rarest)
        value = HASH_START
        for after in range(at + 1, min(at + LONGEST, length) + 1):
            value = mix(value, np.uint64(row[after - 1]))
            log = _log(words, value)
            begins = log <= 0.0
            if log >= 0.0 and after == at + 1:
                log = words.unknown
            if log < 0.0:
                best[0, after] = max(best[0, after], best[0, at] + log)
                if not _through(words, row, at, after, begin, end):
                    best[1, after] = max(best[1, after], best[1, at] + log)
            if not begins:
                break
    likelier: bool = best[1, length] >= best[0, length]
    return likelier


@leaf_kernel
def _is_known(words: HanWords, row: Values, begin: int, end: int) -> bool:
    value = HASH_START
    for at in range(begin, end):
        value = mix(value, np.uint64(row[at]))
    return _log(words, value) < 0.0
