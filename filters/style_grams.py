"""Words in a row that machines write more often than people, and how much of a text they are.

words/style.tsv has their weights; benchmarks/fit_generated.py makes it. Rows overlap: each that
stands anywhere counts, whatever punctuation stands between, in any case and script (traditional
characters are read as simplified ones). They are a trie over the words that all groups share: a
look at a number per word, and a few more where a row may begin.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.evidence import MOST
from filters.names import longest
from filters.text import words
from filters.wordruns import Words, marked_words, word_hash
from kernels.cache import kept_arrays
from kernels.compile import inner_kernel, kernel
from kernels.han import SIMPLIFIED, TRADITIONAL_TO_SIMPLIFIED

LIST = Path(__file__).parent / "words" / "style.tsv"
LANGUAGES = ("en", "zh")
_FOLDED = str.maketrans(
    {chr(ord("A") + i): chr(ord("a") + i) for i in range(26)}
    | {"’": "'"}
    | TRADITIONAL_TO_SIMPLIFIED
)

Numbers = npt.NDArray[np.int32]


class Trie(NamedTuple):
    hashes: npt.NDArray[np.uint64]  # of words in rows, sorted
    tokens: Numbers  # ... which word each is: spellings of one word share a number
    is_word: npt.NDArray[np.bool_]  # by the lower 16 bits of a hash: may it be one of them?
    firsts: Numbers  # [language, token]: the state after it at the start of a row, or -1
    follow: npt.NDArray[np.uint64]  # of a state: a bit for the lower six bits of a token after it
    keys: npt.NDArray[np.int64]  # state << 16 | token, at its place or after it; -1 is free
    states: Numbers  # ... the state after it
    weights: npt.NDArray[np.float32]  # of the row that ends in a state; 0 where none does
    rows: Numbers  # ... its line of the list, or -1


def folded_words(text: str) -> list[str]:
    """As the list has them."""
    return [word.translate(_FOLDED) for word in words(text)]


@functools.cache
def entries() -> list[tuple[str, str, float]]:
    """Language, words in a row, weight of each line of the list."""
    rows = [line.split("\t") for line in LIST.read_text(encoding="utf-8").splitlines()]
    return [(language, phrase, float(weight)) for language, phrase, weight in rows]


def _trie() -> tuple[npt.NDArray[np.generic], ...]:
    spelled = defaultdict(list)
    for traditional, simplified in TRADITIONAL_TO_SIMPLIFIED.items():
        spelled[simplified].append(traditional)
    found = [(LANGUAGES.index(lang), folded_words(phrase), w) for lang, phrase, w in entries()]
    listed = sorted({word for _, row, _ in found for word in row})
    number = {word: token for token, word in enumerate(listed)}
    hashes = {
        word_hash(spelling): token
        for token, word in enumerate(listed)
        for spelling in (word, word.replace("'", "’"), *spelled[word])
    }
    firsts = np.full((len(LANGUAGES), len(listed)), -1, np.int32)
    edges: dict[int, int] = {}
    weights: list[float] = []
    rows: list[int] = []
    for line, (language, row, weight) in enumerate(found):
        state = -1
        for word in row:
            before = firsts[language, number[word]] if state < 0 else -1
            key = state << 16 | number[word]
            after = int(before) if state < 0 else edges.get(key, -1)
            if after < 0:
                after = len(weights)
                weights.append(0.0)
                rows.append(-1)
                if state < 0:
                    firsts[language, number[word]] = after
                else:
                    edges[key] = after
            state = after
        weights[state], rows[state] = weight, line
    follow = np.zeros(len(weights), np.uint64)
    for key in edges:
        follow[key >> 16] |= np.uint64(1 << (key & 63))
    size = 1 << max(4, (4 * len(edges)).bit_length())
    keys, states = np.full(size, -1, np.int64), np.zeros(size, np.int32)
    for key, after in edges.items():
        place = _slot(key, size)
        while keys[place] >= 0:
            place = (place + 1) % size
        keys[place], states[place] = key, after
    order = sorted(hashes)
    is_word = np.zeros(1 << 16, np.bool_)
    is_word[[value & 0xFFFF for value in order]] = True
    return (
        np.array(order, np.uint64),
        np.array([hashes[value] for value in order], np.int32),
        is_word,
        firsts,
        follow,
        keys,
        states,
        np.array(weights, np.float32),
        np.array(rows, np.int32),
    )


@functools.cache
def trie() -> Trie:
    return Trie(*kept_arrays([__file__, LIST, SIMPLIFIED], _trie))


@kernel
def weigh_style(
    found: Words, languages: Numbers, trie: Trie
) -> tuple[npt.NDArray[np.float64], Numbers]:
    """The sum of the weights of all rows in each text, and the lines of its MOST different rows of
    two words and more that weigh most, or -1; `languages` are numbers of LANGUAGES, -1 for others,
    which have none.
    """
    sums = np.zeros(len(languages), np.float64)
    shown = np.full((len(languages), MOST), -1, np.int32)
    tokens = np.empty(longest(found.starts), np.int32)  # of each distinct word, or -1
    states = np.empty(len(tokens), np.int32)  # ... after it at the start of a row, or -1
    places = np.empty(longest(found.offsets) + 1, np.int64)
    best = np.zeros(MOST, np.float32)
    for text in range(len(languages)):
        if languages[text] < 0:
            continue
        start = found.starts[text]
        firsts = trie.firsts[languages[text]]
        for word in range(start, found.starts[text + 1]):
            value = found.vocabulary[word]
            tokens[word - start] = states[word - start] = -1
            if trie.is_word[value & np.uint64(0xFFFF)]:
                at = np.searchsorted(trie.hashes, value)
                if at < len(trie.hashes) and trie.hashes[at] == value:
                    tokens[word - start] = trie.tokens[at]
                    states[word - start] = firsts[trie.tokens[at]]
        for place in range(MOST):
            best[place] = 0
        end = found.offsets[text + 1]
        total = 0.0
        for place in range(marked_words(found, text, states, places)):
            state = states[found.names[places[place]]]
            total += trie.weights[state]
            after = places[place] + 1
            while after < end:
                token = tokens[found.names[after]]
                if token < 0 or trie.follow[state] >> np.uint64(token & 63) & np.uint64(1) == 0:
                    break
                state = _next(trie, state, token)
                if state < 0:
                    break
                weight = trie.weights[state]
                total += weight
                if weight > best[MOST - 1]:
                    show_heaviest(shown[text], best, trie.rows[state], weight)
                after += 1
        sums[text] = total
    return sums, shown


@inner_kernel
def _next(trie: Trie, state: int, token: int) -> int:
    key = state << 16 | token
    place = _slot(key, len(trie.keys))
    while trie.keys[place] >= 0:
        if trie.keys[place] == key:
            return int(trie.states[place])
        place = (place + 1) & (len(trie.keys) - 1)
    return -1


@inner_kernel
def _slot(key: int, size: int) -> int:
    return (key * 0x9E3779B1 & 0xFFFFFFFF) >> 8 & (size - 1)


@inner_kernel
def show_heaviest(
    shown: Numbers, best: npt.NDArray[np.float32], row: int, weight: np.float32
) -> None:
    """Put a row where its weight belongs, heaviest first, unless it is there."""
    for place in range(MOST):
        if shown[place] == row:
            return
    place = MOST - 1
    while place > 0 and best[place - 1] < weight:
        best[place] = best[place - 1]
        shown[place] = shown[place - 1]
        place -= 1
    best[place] = weight
    shown[place] = row
