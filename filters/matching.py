"""Many phrases at once in many texts, through disguises, at word borders.

    found = find(texts, automaton(["色情", "make money"]))

A phrase is a row of symbols (filters/symbols.py); the text is read as one on the fly. Between two
symbols of which one is Han, up to three characters may stand that are no letters (威❤信, 加 微 信);
a space of a phrase is any run of white space. What is found begins and ends at word borders: a
letter is not beside a letter, a digit not beside a digit, and Han characters are a word by
filters/han_words.py. Of each category, the longest phrase that begins first is found, then what
begins after its end. Begins and ends are bytes of the text as it is.

A trie in a hash table is walked from where a phrase may begin: where the first two symbols are
those of some phrase, or the letters of a Latin word; both are looked up in a
small table of bits. So text without phrases costs a look a character, or a word; a walk is at most
as long as the longest phrase, so the time is linear in the text, whatever the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.han_words import REACH, WORDS, HanWords, Values, han_words, is_word
from filters.segments import Texts
from filters.symbols import BLANK, DIGIT, GAP, HAN, LETTER, NOTHING, VALUE, Symbols, symbols
from filters.text import next_char
from kernels.compile import inner_kernel, kernel
from kernels.han import SIMPLIFIED
from kernels.hashing import HASH_PRIME, HASH_START, Bytes, ascii_letters, mix

Keys = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]

FILES = (str(WORDS), str(SIMPLIFIED))  # what is found depends on them too
LONGEST = 64  # symbols of a phrase
MAX_GAP = 3  # characters between two symbols
_FILTER_BITS = 18  # of a filter: 32 KB, the level-1 cache
_MAX_STATES = 1 << 21
_ANY = np.uint64(VALUE)
_ROOT = _MAX_STATES  # marks a first symbol that stands for a state
_ORDINARY = -1  # the entry number of an ordinary phrase


class Automaton(NamedTuple):
    symbols: Symbols
    # Filters, two bits of 64 by hash: of the first two symbols of a phrase, and with the third one;
    # of the ASCII letters, or digits, that begin a phrase, and with the letter that begins its
    # second word. ANY for a third that there is not, or that is of another kind.
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


class Matches(NamedTuple):
    """In the order of texts, then begins; of one begin, the longest first."""

    texts: Positions
    entries: Positions
    begins: Positions  # bytes in `data` of the texts
    ends: Positions


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
    all_forms = [*forms, *(Form(_ORDINARY, text) for text in ordinary)]
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


def find(texts: Texts, built: Automaton) -> Matches:
    """All that is found of a batch."""
    return Matches(*_without_ordinary(_find(texts.data, texts.offsets, built)))


@inner_kernel
def _slot(steps: Keys, key: np.uint64) -> int:
    """Where the step stands, or could."""
    mixed = key * HASH_PRIME
    slot = int(mixed ^ (mixed >> np.uint64(32))) & (len(steps) - 1)
    while steps[slot] and steps[slot] >> np.uint64(21) != key:
        slot = (slot + 1) & (len(steps) - 1)
    return slot


@inner_kernel
def _pair(first: int, second: int) -> np.uint64:
    """Hash of two symbols."""
    mixed = np.uint64(first << 21 | second) * HASH_PRIME
    return mixed ^ (mixed >> np.uint64(32))


@inner_kernel
def _bits(hashed: np.uint64) -> np.uint64:
    """The two bits of 64 that stand for a hash, in the word of a filter that `_place` names."""
    one = np.uint64(1) << (hashed & np.uint64(63))
    return one | np.uint64(1) << (hashed >> np.uint64(6) & np.uint64(63))


@inner_kernel
def _place(hashed: np.uint64) -> int:
    return int(hashed >> np.uint64(64 + 6 - _FILTER_BITS))


@inner_kernel
def _has(filter_: Keys, hashed: np.uint64) -> bool:
    bits = _bits(hashed)
    has: bool = filter_[_place(hashed)] & bits == bits
    return has


@kernel
def _build(built: Automaton, flat: Values, offsets: Positions) -> None:
    num_states = 1
    for form in range(len(offsets) - 1):
        begin, end = offsets[form], offsets[form + 1]
        first, second = int(flat[begin]), int(flat[begin + 1]) & VALUE
        state = _ROOT | first & VALUE
        for at in range(begin + 1, end):
            key = np.uint64(state << 21 | int(flat[at]) & VALUE)
            slot = _slot(built.steps, key)
            if built.steps[slot] == 0:
                built.steps[slot] = key << np.uint64(21) | np.uint64(num_states)
                num_states += 1
            state = int(built.steps[slot]) & VALUE
        built.chain[form] = built.ends[state]
        built.ends[state] = form
        built.singles[(first & VALUE) >> 3] |= np.uint8(1 << (first & 7))
        hashed = _pair(first & VALUE, second)
        built.pairs[_place(hashed)] |= _bits(hashed)
        third = np.uint64(flat[begin + 2] & VALUE) if end > begin + 2 else _ANY
        hashed = mix(hashed, third)
        built.pairs[_place(hashed)] |= _bits(hashed)
        kind = first & (LETTER | DIGIT)
        word = np.empty(end - begin, np.uint8)
        length = 0
        while length < len(word) and int(flat[begin + length]) & kind:
            word[length] = min(int(flat[begin + length]) & VALUE, 0xFF)  # no ASCII: ends the run
            length += 1
        hashed = _run(word, 0, length, kind)[1]
        built.heads[_place(hashed)] |= _bits(hashed)
        then = _ANY
        if length + 1 < len(word) and int(flat[begin + length]) & BLANK:
            symbol = int(flat[begin + length + 1])
            if symbol & (LETTER | DIGIT) and symbol & VALUE < 0x80:
                then = np.uint64(symbol & VALUE)
        hashed = mix(hashed, then)
        built.heads[_place(hashed)] |= _bits(hashed)


@kernel
def _find(data: Bytes, offsets: Positions, built: Automaton) -> Positions:
    """Texts, entries, begins, ends: int64[4, n]; ordinary phrases too."""
    found = np.empty((4, 64), np.int64)
    num_found = 0
    free = np.empty(built.num_categories, np.int64)
    room = _Room(
        np.empty((2, built.num_categories), np.int64),
        np.empty(LONGEST + 2 * REACH, np.uint32),
        np.empty((2, LONGEST + 2 * REACH + 1)),
    )
    starts = np.empty(1024, np.int64)
    ends = np.empty((4, 64), np.int64)
    for text in range(len(offsets) - 1):
        low, end = offsets[text], offsets[text + 1]
        if end - low > len(starts):
            starts = np.empty(end - low, np.int64)
        num_starts = _scan(
            data, low, end, built.symbols, built.pairs, built.heads, built.singles, starts
        )
        ends, num_ends = _walk(
            data, end, built.symbols, built.steps, built.ends, starts[:num_starts], ends
        )
        for category in range(len(free)):
            free[category] = low
        last = 0
        while last < num_ends:  # the ends of one start
            first = last
            while last < num_ends and ends[0, last] == ends[0, first]:
                last += 1
            num_here = _accept(data, low, end, ends, first, last, built, free, room)
            while num_found + num_here > found.shape[1]:
                found = _grown(found)
            for i in range(num_here):
                found[0, num_found] = text
                found[1, num_found] = room.found[0, i]
                found[2, num_found] = ends[0, first]
                found[3, num_found] = room.found[1, i]
                num_found += 1
    return found[:, :num_found]


@kernel
def _scan(
    data: Bytes,
    at: int,
    end: int,
    table: Symbols,
    pairs: Keys,
    heads: Keys,
    singles: Bits,
    starts: Positions,
) -> int:
    """Where in data[at:end] a phrase may begin: how many places, in `starts`."""
    num_starts = 0
    first = -1  # a symbol with which a phrase may begin
    first_at = at
    before = 0  # the kind of the character before: LETTER, DIGIT or other
    while at < end:
        start = at
        byte = data[at]
        word = False
        if 0xE4 <= byte <= 0xE9:  # Han, nearly always: next_char by hand
            code = int(byte & 0xF) << 12 | int(data[at + 1] & 0x3F) << 6 | int(data[at + 2] & 0x3F)
            symbol = int(table[code])
            at += 3
            if symbol & HAN:
                if first >= 0:
                    pair = _pair(first, symbol & VALUE)
                    if _has(pairs, pair) and _fits(pairs, pair, _next_han(data, at, end, table)):
                        starts[num_starts] = first_at
                        num_starts += 1
                first, first_at, before = symbol & VALUE, start, 0
                continue
        elif byte >= 0x80:
            code, at = next_char(data, at)
            symbol = int(table[code])
        else:
            symbol = int(table[byte])
            at += 1
            word = symbol & (LETTER | DIGIT) != 0
        if first >= 0 and (
            _has(pairs, _pair(first, symbol & VALUE))
            or (symbol & (GAP | NOTHING) != 0 and singles[first >> 3] >> (first & 7) & 1 != 0)
        ):
            starts[num_starts] = first_at
            num_starts += 1
        first = -1
        if symbol & NOTHING:
            continue
        kind = symbol & (LETTER | DIGIT)
        apart = kind == 0 or kind != before
        before = kind
        if word:
            length, head = _run(data, start, end, kind)
            at = start + length
            if apart and (
                (_has(heads, head) and _fits(heads, head, _next_word(data, at, end, table)))
                or (at < end and data[at] >= 0x80 and _goes_on(data, at, table, kind))
            ):
                starts[num_starts] = start
                num_starts += 1
            if at < end and data[at] == 0x20:  # saves a turn for every second one
                at += 1
                before = 0
        elif apart and symbol & BLANK == 0:
            first, first_at = symbol & VALUE, start
    return num_starts


@inner_kernel
def _run(data: Bytes, at: int, end: int, kind: int) -> tuple[int, np.uint64]:
    """Length and hash of the ASCII letters, or digits, from `at` on."""
    if kind & LETTER:
        return ascii_letters(data, at, end)
    length = 0
    value = HASH_START
    while at + length < end and 0x30 <= data[at + length] <= 0x39:
        value = mix(value, np.uint64(data[at + length]))
        length += 1
    return length, value


@inner_kernel
def _fits(filter_: Keys, hashed: np.uint64, then: np.uint64) -> bool:
    """May a phrase go on so? `then` is what stands there, _ANY if that says nothing."""
    return then == _ANY or _has(filter_, mix(hashed, then)) or _has(filter_, mix(hashed, _ANY))


@kernel
def _next_han(data: Bytes, at: int, end: int, table: Symbols) -> np.uint64:
    """The symbol at byte `at` if it is Han, else _ANY: what is none may be passed over."""
    symbol = 0
    if at < end and 0xE4 <= data[at] <= 0xE9:
        symbol = int(table[next_char(data, at)[0]])
    return np.uint64(symbol & VALUE) if symbol & HAN else _ANY


@kernel
def _next_word(data: Bytes, at: int, end: int, table: Symbols) -> np.uint64:
    """The ASCII letter, or digit, after one space at byte `at`, else _ANY."""
    if at + 1 < end and data[at] == 0x20 and data[at + 1] < 0x80:
        symbol = int(table[data[at + 1]])
        if symbol & (LETTER | DIGIT):
            return np.uint64(symbol & VALUE)
    return _ANY


@kernel
def _goes_on(data: Bytes, at: int, table: Symbols, kind: int) -> bool:
    """Do the letters, or digits, before byte `at` go on in a character that is not ASCII?"""
    goes_on: bool = table[next_char(data, at)[0]] & (NOTHING | kind) != 0
    return goes_on


class _Room(NamedTuple):
    """Scratch of what follows."""

    found: Positions  # [2, n]: entries and ends
    row: Values  # letters, digits and Han of a phrase, with the Han around
    best: npt.NDArray[np.float64]


@kernel
def _grown(found: Positions) -> Positions:
    grown = np.empty((4, 2 * found.shape[1]), np.int64)
    for row in range(4):
        for i in range(found.shape[1]):
            grown[row, i] = found[row, i]
    return grown


@kernel
def _walk(
    data: Bytes,
    end: int,
    table: Symbols,
    steps: Keys,
    forms: Ints,
    starts: Positions,
    ends: Positions,
) -> tuple[Positions, int]:
    """Where forms end that begin at `starts`: int64[4, n], of which n; start, byte after the form,
    the form, whether a character was passed over; of one start in ascending order.
    """
    num_ends = 0
    for start in starts:
        state = depth = gap = gapped = last = 0
        at = start
        while at < end and depth < LONGEST:
            code, at = next_char(data, at)
            symbol = int(table[code])
            if symbol & NOTHING or symbol & last & BLANK:
                continue
            if depth == 0:
                state = _ROOT | symbol & VALUE
            else:
                step = steps[_slot(steps, np.uint64(state << 21 | symbol & VALUE))]
                if step == 0 or (gap and (last | symbol) & HAN == 0):
                    gap += 1
                    if symbol & GAP == 0 or gap > MAX_GAP:
                        break
                    continue
                state = int(step) & VALUE
                gapped |= gap > 0
                if forms[state] >= 0:
                    if num_ends == ends.shape[1]:
                        ends = _grown(ends)
                    ends[0, num_ends] = start
                    ends[1, num_ends] = at
                    ends[2, num_ends] = forms[state]
                    ends[3, num_ends] = gapped
                    num_ends += 1
            depth += 1
            gap = 0
            last = symbol
    return ends, num_ends


@kernel
def _accept(
    data: Bytes,
    low: int,
    end: int,
    ends: Positions,
    first: int,
    last: int,
    built: Automaton,
    free: Positions,
    room: _Room,
) -> int:
    """How many phrases there are of ends[:, first:last], which begin at one byte; they are in
    room.found.
    """
    num_found = 0
    begin = ends[0, first]
    for i in range(last - 1, first - 1, -1):
        after, form, gapped = ends[1, i], ends[2, i], ends[3, i]
        word = -1  # not known
        while form >= 0:
            entry = built.entries[form]
            category = built.categories[entry]
            if begin >= free[category] and (gapped or not built.gapped[form]):
                if word < 0:
                    word = _is_apart(data, low, begin, after, end, built, room)
                if word > 0 or entry == _ORDINARY:
                    room.found[0, num_found] = entry
                    room.found[1, num_found] = after
                    num_found += 1
                    free[category] = after
            form = built.chain[form]
    return num_found


@kernel
def _is_apart(
    data: Bytes, low: int, begin: int, after: int, end: int, built: Automaton, room: _Room
) -> bool:
    """Does data[begin:after], of the text data[low:end], stand at word borders?"""
    table, row = built.symbols, room.row
    first = last = length = 0
    at = begin
    while at < after:
        code, at = next_char(data, at)
        symbol = int(table[code])
        if symbol & NOTHING:
            continue
        first = first if first else symbol
        last = symbol
        if symbol & (HAN | LETTER | DIGIT):
            row[REACH + length] = symbol & VALUE
            length += 1
    num_before, num_after = 0, 0
    at = begin
    while first & HAN and num_before < REACH and at > low:
        at -= 1
        while data[at] & 0xC0 == 0x80:
            at -= 1
        symbol = int(table[next_char(data, at)[0]])
        if symbol & HAN == 0:
            break
        num_before += 1
        row[REACH - num_before] = symbol & VALUE
    at = after
    while num_after < REACH and at < end:
        code, at = next_char(data, at)
        symbol = int(table[code])
        if symbol & NOTHING:
            continue
        if symbol & last & (LETTER | DIGIT):
            return False
        if symbol & last & HAN == 0:
            break
        row[REACH + length + num_after] = symbol & VALUE
        num_after += 1
    if num_before + num_after == 0:
        return True
    around = row[REACH - num_before :]
    end_of_row = num_before + length + num_after
    return is_word(built.words, around, end_of_row, num_before, num_before + length, room.best)


@kernel
def _without_ordinary(found: Positions) -> Positions:
    """What does not overlap an ordinary phrase, or holds it; of these none."""
    kept = np.empty_like(found)
    num_kept = 0
    ordinary = np.flatnonzero(found[1] == _ORDINARY)
    low = 0
    for i in range(found.shape[1]):
        text, entry, begin, end = found[0, i], found[1, i], found[2, i], found[3, i]
        while low < len(ordinary) and (
            found[0, ordinary[low]] < text
            or (found[0, ordinary[low]] == text and found[3, ordinary[low]] <= begin)
        ):
            low += 1
        keep = entry != _ORDINARY
        other = low
        while keep and other < len(ordinary):
            j = ordinary[other]
            if found[0, j] > text or found[2, j] >= end:
                break
            keep = begin <= found[2, j] and found[3, j] <= end
            keep &= end - begin > found[3, j] - found[2, j]
            other += 1
        if keep:
            for row in range(4):
                kept[row, num_kept] = found[row, i]
            num_kept += 1
    return kept[:, :num_kept]
