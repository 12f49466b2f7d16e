"""What filters/matching.py looks for: phrases as a trie in a hash table, and small tables of bits
that say where none can begin.

A phrase is a row of symbols (filters/symbols.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.han_words import WORDS, HanWords, Values, han_words
from filters.names import Offsets
from filters.symbols import BLANK, DIGIT, LETTER, NOTHING, VALUE, Symbols, symbols
from kernels.compile import inner_kernel, kernel
from kernels.han import SIMPLIFIED
from kernels.hashing import HASH_PRIME, HASH_START, Bytes, ascii_letters, mix

Keys = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Bits = npt.NDArray[np.uint8]

FILES = (str(WORDS), str(SIMPLIFIED))  # what is found depends on them too
LONGEST = 64  # symbols of a phrase
_FILTER_BITS = 18  # of a filter: 32 KB, the level-1 cache
_MAX_STATES = 1 << 21
ANY, WIDE = np.uint64(VALUE), np.uint64(VALUE - 1)
ROOT = _MAX_STATES  # marks a first symbol that stands for a state
ORDINARY = -1  # the entry number of an ordinary phrase


class Automaton(NamedTuple):
    symbols: Symbols
    # Filters, two bits of 64 by hash: of the first two symbols of a phrase, and with the third one,
    # ANY where there is none; of the ASCII letters, or digits, that begin a phrase, and with what
    # follows them: the word after white space, the next symbol, WIDE if that is not ASCII, ANY if
    # nothing does.
    pairs: Keys
    heads: Keys
    singles: Bits  # by symbol: begins some phrase
    # The trie, as an open hash table of (state, symbol, next state), 21 bits each. The first step
    # has the top bit, and the first symbol for a state.
    steps: Keys
    ends: Ints  # by state: the first form that ends there, or -1
    chain: Ints  # by form: the next one that is the same, or -1
    entries: Ints  # by form: its entry
    gapped: Bits  # by form: counts only with a character between
    categories: Ints  # by entry
    num_categories: int
    words: HanWords


def folded(phrase: str) -> Symbols:
    """The symbols of a phrase: white space is one, what cannot be seen is none."""
    found = symbols()[np.array([ord(char) for char in phrase.strip()], np.int64)]
    found = found[found & NOTHING == 0]
    blank = found & BLANK != 0
    kept: Symbols = found[~(blank & np.concatenate([[False], blank[:-1]]))]
    return kept


class Form(NamedTuple):
    """One way to write an entry."""

    entry: int
    text: str
    gapped: bool = False  # only with a character between


def automaton(
    forms: Sequence[Form], categories: Sequence[int], ordinary: Sequence[str] = ()
) -> Automaton:
    """What `find` looks for. `categories` has a number from 0 on for each entry; phrases of
    `ordinary` are not found, and nothing is that overlaps them and does not hold them.

    Raises:
        ValueError: a phrase has less than two symbols, or more than LONGEST; there are too many.
    """
    all_forms = [*forms, *(Form(ORDINARY, text) for text in ordinary)]
    rows = [folded(form.text) for form in all_forms]
    for form, row in zip(all_forms, rows, strict=True):
        if not 2 <= len(row) <= LONGEST:
            raise ValueError(
                f"the phrase {form.text!r} has {len(row)} characters; 2 to {LONGEST} can be found"
            )
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    flat = np.concatenate([*rows, np.empty(0, np.uint32)])
    if len(flat) >= _MAX_STATES:
        raise ValueError(
            f"the phrases have {len(flat)} characters together, and {_MAX_STATES - 1} fit; "
            "leave some out, or count them in a group of their own"
        )
    num_categories = max(categories, default=-1) + 1
    built = Automaton(
        symbols=symbols(),
        pairs=np.zeros((1 << _FILTER_BITS) // 64, np.uint64),
        heads=np.zeros((1 << _FILTER_BITS) // 64, np.uint64),
        singles=np.zeros((VALUE + 1) // 8, np.uint8),
        steps=np.zeros(1 << (2 * len(flat) + 1).bit_length(), np.uint64),
        ends=np.full(len(flat) + 1, -1, np.int32),
        chain=np.full(len(rows), -1, np.int32),
        entries=np.array([form.entry for form in all_forms], np.int32),
        gapped=np.array([form.gapped for form in all_forms], np.uint8),
        # The last one is that of ordinary phrases, whose entry is -1.
        categories=np.array([*categories, num_categories], np.int32),
        num_categories=num_categories + 1,
        words=han_words(),
    )
    _build(built, flat, offsets)
    return built


def plain(entries: Sequence[str]) -> Automaton:
    """The automaton of entries as they are written, all of one category."""
    return automaton([Form(i, text) for i, text in enumerate(entries)], [0] * len(entries))


@inner_kernel
def slot_of(steps: Keys, key: np.uint64) -> int:
    """Where the step stands, or could."""
    mixed = key * HASH_PRIME
    slot = int(mixed ^ (mixed >> np.uint64(32))) & (len(steps) - 1)
    while steps[slot] and steps[slot] >> np.uint64(21) != key:
        slot = (slot + 1) & (len(steps) - 1)
    return slot


@inner_kernel
def pair_of(first: int, second: int) -> np.uint64:
    """Hash of two symbols."""
    mixed = np.uint64(first << 21 | second) * HASH_PRIME
    return mixed ^ (mixed >> np.uint64(32))


@inner_kernel
def bits_of(hashed: np.uint64) -> np.uint64:
    """The two bits of 64 that stand for a hash, in the word of a filter that `place_of` names."""
    one = np.uint64(1) << (hashed & np.uint64(63))
    return one | np.uint64(1) << (hashed >> np.uint64(6) & np.uint64(63))


@inner_kernel
def place_of(hashed: np.uint64) -> int:
    return int(hashed >> np.uint64(64 + 6 - _FILTER_BITS))


@kernel
def _build(built: Automaton, flat: Values, offsets: Offsets) -> None:
    num_states = 1
    for form in range(len(offsets) - 1):
        begin, end = offsets[form], offsets[form + 1]
        first, second = int(flat[begin]), int(flat[begin + 1]) & VALUE
        state = ROOT | first & VALUE
        for at in range(begin + 1, end):
            key = np.uint64(state << 21 | int(flat[at]) & VALUE)
            slot = slot_of(built.steps, key)
            if built.steps[slot] == 0:
                built.steps[slot] = key << np.uint64(21) | np.uint64(num_states)
                num_states += 1
            state = int(built.steps[slot]) & VALUE
        built.chain[form] = built.ends[state]
        built.ends[state] = form
        built.singles[(first & VALUE) >> 3] |= np.uint8(1 << (first & 7))
        hashed = pair_of(first & VALUE, second)
        built.pairs[place_of(hashed)] |= bits_of(hashed)
        third = np.uint64(flat[begin + 2] & VALUE) if end > begin + 2 else ANY
        hashed = mix(hashed, third)
        built.pairs[place_of(hashed)] |= bits_of(hashed)
        if first & (LETTER | DIGIT):
            at, head = _run(flat, begin, end)
            built.heads[place_of(head)] |= bits_of(head)
            then = ANY if at == end else WIDE
            if at < end and int(flat[at]) & VALUE < 0x80:
                then = np.uint64(flat[at] & VALUE)
            if at + 1 < end and int(flat[at]) & BLANK and int(flat[at + 1]) & (LETTER | DIGIT):
                then = _run(flat, at + 1, end)[1]
            hashed = mix(head, then)
            built.heads[place_of(hashed)] |= bits_of(hashed)


@kernel
def _run(flat: Values, at: int, end: int) -> tuple[int, np.uint64]:
    """The symbol after the ASCII letters, or digits, from `at` on; their `run_of` hash."""
    kind = int(flat[at]) & (LETTER | DIGIT)
    word = np.zeros(end - at, np.uint8)
    length = 0
    while length < len(word) and int(flat[at + length]) & kind and flat[at + length] & VALUE < 0x80:
        word[length] = flat[at + length] & VALUE
        length += 1
    return at + length, run_of(word, 0, length, kind)[1]


@inner_kernel
def run_of(data: Bytes, at: int, end: int, kind: int) -> tuple[int, np.uint64]:
    """Length and hash of the ASCII letters, or digits, from `at` on."""
    if kind & LETTER:
        return ascii_letters(data, at, end)
    length = 0
    value = HASH_START
    while at + length < end and 0x30 <= data[at + length] <= 0x39:
        value = mix(value, np.uint64(data[at + length]))
        length += 1
    return length, value
