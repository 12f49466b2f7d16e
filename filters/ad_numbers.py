"""What of an advertisement is no phrase of a list: telephone numbers, prices, stuffed words."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import numpy.typing as npt

from filters import text as units
from filters.names import Offsets, Positions
from filters.wordruns import Words
from kernels.compile import inner_kernel, kernel, leaf_kernel
from kernels.hashing import HASH_PRIME, Bytes, digit_bytes, first_byte, load8

Floats = npt.NDArray[np.float64]

PHONE, PRICE, DISCOUNT = range(3)
NUM_NUMBERS = 3
STUFFED_WORDS = 2_000  # of a text: the first words, in which a phrase is looked for
STUFFED_FROM = 0.12  # of the words under a phrase of two: less is chance
MIN_REPEATS = 4
_PAIR_BITS = 12  # two slots a word
_PAIR_SLOTS = 1 << _PAIR_BITS

_YUAN, _KUAI, _OFF = 0xE58583, 0xE59D97, 0xE68A98  # 元 块 折
_ZERO, _NINE, _COMMA, _DOT, _HYPHEN, _DOLLAR = (ord(char) for char in "09,.-$")


@kernel
def count_numbers(data: Bytes, offsets: Offsets) -> Positions:
    """Of each text: telephone numbers, prices and discounts."""
    counts = np.zeros((len(offsets) - 1, NUM_NUMBERS), np.int32)
    for text in range(len(offsets) - 1):
        low, end = offsets[text], offsets[text + 1]
        kind, _, at = next_number(data, low, low, end)
        while kind >= 0:
            counts[text, kind] += 1
            kind, _, at = next_number(data, low, at, end)
    return counts


@leaf_kernel
def next_number(data: Bytes, low: int, at: int, end: int) -> tuple[int, int, int]:
    """The first telephone number, price or discount from byte `at` on of the text data[low:end]:
    its kind, or -1; its begin and end.

    A telephone number is a run of groups of digits with " ", "-", "(", ")" or "." between: 11
    digits from 13 to 19; 10 to 12 from 0, and then no 0; 10 from 400 or 800; groups of 3, 3 and 4,
    or of 3 and 4 with a hyphen (with a 1 before or not). A price has $, £, €, ¥ or ￥ before it, or
    元 or 块 behind; a discount 折.
    """
    while at < end:
        digits = digit_bytes(load8(data, at, end))
        if digits == 0:
            at += 8
            continue
        start = at + first_byte(digits)
        at = _number_end(data, start, end)
        joined = start > low and (data[start - 1] == _DOT or _is_latin(data[start - 1]))
        if joined or (at < end and _is_latin(data[at])):
            continue
        after = _han(data, at, end)
        if after in (_OFF, _YUAN, _KUAI):
            return DISCOUNT if after == _OFF else PRICE, start, at + 3 + int(data[at] == 32)
        money = _money(data, low, start)
        if money:
            return PRICE, start - money, at
        stop = phone_end(data, start, end)
        if stop:
            return PHONE, start, stop
    return -1, end, end


@inner_kernel
def _is_latin(byte: int) -> bool:
    return 97 <= byte | 0x20 <= 122 or byte == 95


@inner_kernel
def _number_end(data: Bytes, at: int, end: int) -> int:
    """Digits, with commas and full stops between digits."""
    while at < end and (
        _ZERO <= data[at] <= _NINE
        or (
            (data[at] == _COMMA or data[at] == _DOT)
            and at + 1 < end
            and _ZERO <= data[at + 1] <= _NINE
        )
    ):
        at += 1
    return at


@inner_kernel
def _han(data: Bytes, at: int, end: int) -> int:
    """The three bytes there, after at most a space."""
    if at < end and data[at] == 32:
        at += 1
    if at + 3 > end:
        return 0
    return int(data[at]) << 16 | int(data[at + 1]) << 8 | int(data[at + 2])


@inner_kernel
def _money(data: Bytes, low: int, at: int) -> int:
    """Bytes of the sign of a currency before byte `at`, a space between or not; 0 for none."""
    space = int(at > low and data[at - 1] == 32)
    at -= space
    if at > low and data[at - 1] == _DOLLAR:
        return space + 1
    if at - 2 >= low and data[at - 2] == 0xC2:
        return space + 2 if int(data[at - 1]) in (0xA3, 0xA5) else 0  # £ ¥
    if at - 3 < low:
        return 0
    before = int(data[at - 3]) << 16 | int(data[at - 2]) << 8 | int(data[at - 1])
    return space + 3 if before in (0xE282AC, 0xEFBFA5) else 0  # € ￥


@leaf_kernel
def phone_end(data: Bytes, start: int, end: int) -> int:
    """Where the telephone number that begins there ends; 0 where none does."""
    groups = total = head = 0  # the first three digits, as a number
    first = before = middle = last = 0  # digits of the first group, and of the last three
    hyphens = True
    at = start
    while at < end and groups < 5:
        size = 0
        while at < end and _ZERO <= data[at] <= _NINE:
            if total == 13:
                return 0
            if total < 3:
                head = 10 * head + int(data[at] - _ZERO)
            total += 1
            size += 1
            at += 1
        groups += 1
        first = first if first else size
        before, middle, last = middle, last, size
        after = at
        while after < end and after < at + 2 and data[after] in (32, 40, 41, 45, 46):
            after += 1
        if after in (at, end) or not _ZERO <= data[after] <= _NINE:
            break
        hyphens = hyphens and data[at] == _HYPHEN
        at = after
    if at < end and _is_latin(data[at]):
        return 0
    short = groups == 2 and first == 3 and last == 4 and hyphens
    long = before == middle == 3 and last == 4
    long = long and (groups == 3 or (groups == 4 and first == 1 and 100 <= head < 200))
    mobile = total == 11 and groups <= 3 and 130 <= head < 200
    landline = 10 <= total <= 12 and groups <= 4 and 10 <= head < 100
    service = total == 10 and head in (400, 800)
    return at if short or long or mobile or landline or service else 0


@kernel
def stuffed_share(words: Words) -> Floats:
    """Of the first STUFFED_WORDS words of each text: the share under the two in a row that stand
    there most often, at least MIN_REPEATS times; a word that repeats itself is no such two. 0 where
    it is not more than STUFFED_FROM.
    """
    shares = np.zeros(len(words.offsets) - 1)
    times = np.zeros(STUFFED_WORDS, np.int64)
    pairs = np.zeros(_PAIR_SLOTS, np.int64)
    counts = np.zeros(_PAIR_SLOTS, np.int64)
    used = np.zeros(STUFFED_WORDS, np.int64)
    for text in range(len(shares)):
        begin = words.offsets[text]
        end = min(words.offsets[text + 1], begin + STUFFED_WORDS)
        second = _second(words, begin, end, times)  # two in a row stand there no more often
        if second < MIN_REPEATS or 2 * second / (end - begin) <= STUFFED_FROM:
            continue
        most = num_used = 0
        for i in range(begin, end - 1):
            pair = (np.int64(words.names[i]) << 32 | np.int64(words.names[i + 1])) + 1
            slot = np.int64((np.uint64(pair) * HASH_PRIME) >> np.uint64(64 - _PAIR_BITS))
            while pairs[slot] and pairs[slot] != pair:
                slot = (slot + 1) % _PAIR_SLOTS
            if not pairs[slot]:
                pairs[slot] = pair
                used[num_used] = slot
                num_used += 1
            if words.names[i] != words.names[i + 1]:
                counts[slot] += 1
                most = max(most, int(counts[slot]))
        for i in range(num_used):
            pairs[used[i]] = counts[used[i]] = 0
        share = min(2 * most / (end - begin), 1.0)
        if most >= MIN_REPEATS and share > STUFFED_FROM:
            shares[text] = share
    return shares


@inner_kernel
def _second(words: Words, begin: int, end: int, times: Offsets) -> int:
    """How often the second commonest of these words stands among them, the first of a text;
    `times` is zeros, and is left so."""
    distinct = most = second = 0
    for i in range(begin, end):
        name = words.names[i]
        times[name] += 1
        distinct = max(distinct, name + 1)
    for name in range(distinct):
        second = max(second, min(most, times[name]))
        most = max(most, times[name])
        times[name] = 0
    return second


def stuffed_words(text: str) -> str:
    """The two words of which `stuffed_share` tells the share."""
    found = units.words(text[: 20 * STUFFED_WORDS].lower())[:STUFFED_WORDS]
    pairs = Counter(pair for pair in itertools.pairwise(found) if pair[0] != pair[1])
    ((one, other), _) = pairs.most_common(1)[0]
    return f"{one} {other}" if other.isascii() else one + other
