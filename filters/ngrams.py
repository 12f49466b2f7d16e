"""A language model of characters: interpolated Kneser-Ney, counted and estimated on the spot.

Chen and Goodman 1999, section 2.7, one discount an order: n1 / (n1 + 2 n2). What pruned n-grams
held goes to the shorter ones, so probabilities still add up to one. The text is read folded
(filters/spread.py), digits as 0, white space as one space; a text begins with BEGIN and ends with
END, which is predicted too, so that an empty text has a value.

The model of a language is one hash table for all orders. A key is the hash of an n-gram's
characters, the last first; beside it stand minus log2 of its probability and of the weight that it
gives to shorter n-grams when it is a context that did not go on, in 2^-16 bits. Whole numbers: sums
do not depend on the machine, and the same text gives the same bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.names import Keys, Offsets
from filters.spread import Codes
from filters.text import SPACE, Bits, next_char
from kernels.compile import inner_kernel, kernel
from kernels.hashing import HASH_PRIME, HASH_START, Bytes

BEGIN, END = 2, 3  # controls, of which a normalized text has none
UNIT = 1 << 16  # of a bit
PRUNED_FROM = 3  # shorter n-grams are all kept
Positions = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


class Model(NamedTuple):
    order: int
    table: Keys  # uint64[slots, 2]: key (0: empty), cost | back-off << 32
    unknown: int  # cost of a character that was never seen


@kernel
def characters(
    data: Bytes, offsets: Offsets, folds: Codes, classes: Bits, max_chars: int
) -> tuple[Codes, Offsets]:
    """What the model reads of each text, between BEGIN and END; no END where it was cut."""
    out = np.empty(offsets[-1] - offsets[0] + 2 * len(offsets), np.uint32)
    ends = np.zeros(len(offsets), np.int64)
    count = 0
    for text in range(len(offsets) - 1):
        first = count
        out[count] = BEGIN
        count += 1
        at, end = offsets[text], offsets[text + 1]
        space = True  # a run of white space is one, none at the beginning
        while at < end and count - first <= max_chars:
            code, at = next_char(data, at)
            code = int(folds[code])
            if classes[code] & SPACE:
                if space:
                    continue
                code = 32
            space = code == 32
            if 48 <= code < 58:
                code = 48
            out[count] = code
            count += 1
        if at == end:
            out[count] = END
            count += 1
        ends[text + 1] = count
    return out[:count], ends


@inner_kernel
def longer(key: np.uint64, code: int) -> np.uint64:
    """The key of an n-gram with one more character before it."""
    value = (key ^ np.uint64(code)) * HASH_PRIME
    return value ^ (value >> np.uint64(29))


@kernel
def score(
    table: Keys, order: int, unknown: int, codes: Codes, ends: Offsets
) -> npt.NDArray[np.int64]:
    """Cost of each text, in 2^-16 bits: what its characters take, given those before."""
    costs = np.zeros(len(ends) - 1, np.int64)
    weights = np.zeros(order + 1, np.int64)  # back-off of the n-grams that end at the one before
    mask = len(table) - 1
    for text in range(len(ends) - 1):
        known = 0  # length of the longest of these
        backing = 0  # of those that do not go on to this character
        total = 0
        for at in range(ends[text], ends[text + 1]):
            key = HASH_START
            cost = unknown
            found = 0
            gone_on = 0
            next_backing = 0
            for length in range(1, min(order, known + 1) + 1):
                key = longer(key, codes[at - length + 1])
                slot = np.int64(key >> np.uint64(20)) & mask
                while table[slot, 0] != key and table[slot, 0] != 0:
                    slot = (slot + 1) & mask
                if table[slot, 0] == 0:
                    break
                backing -= gone_on
                gone_on = int(weights[length]) if length <= known else 0
                cost = int(table[slot, 1] & np.uint64(0xFFFFFFFF))
                weights[length] = np.int64(table[slot, 1] >> np.uint64(32))
                next_backing += int(weights[length])
                found = length
            if at > ends[text]:
                total += cost + backing
            known, backing = found, next_backing
        costs[text] = total
    return costs


# --- estimation -----------------------------------------------------------------------------------


class _Grams(NamedTuple):
    """The distinct n-grams of one length, by key."""

    keys: Keys
    first: Positions  # where one ends
    counts: Positions  # how often; of shorter ones, after how many different characters
    kept: npt.NDArray[np.bool_]


def estimate(codes: Codes, ends: Offsets, order: int, min_count: int) -> Model:
    """The model of some texts, as `characters` gives them.

    `min_count`: how often an n-gram of three or more characters stands there at least, to be kept.
    """
    place = np.arange(len(codes)) - np.repeat(ends[:-1], np.diff(ends))  # 0: BEGIN
    keys = [_keys(codes, place, length) for length in range(1, order + 1)]
    grams = _counted(keys, place, order, min_count)
    share = np.zeros(0)  # of each n-gram, probability after its context
    costs: list[Values] = []
    backing: list[Values] = [np.ones(len(gram.keys)) for gram in grams]  # weight of what is shorter
    least = 0.0
    for length, gram in enumerate(grams, 1):
        if length == 1:
            context, contexts = np.zeros(len(gram.keys), np.int64), 1
        else:
            shorter = grams[length - 2]
            context = np.searchsorted(shorter.keys, keys[length - 2][gram.first - 1])
            contexts = len(shorter.keys)
        seen = np.bincount(context, gram.counts, contexts)
        taken = np.maximum(gram.counts - _discount(gram.counts), 0) / np.maximum(seen[context], 1)
        taken[~gram.kept] = 0
        rest = np.maximum(1 - np.bincount(context, taken, contexts), 0)
        if length == 1:
            least = float(rest[0]) / (np.count_nonzero(gram.counts) + 1)
            share = taken + least
        else:
            backing[length - 2] = rest
            suffix = np.searchsorted(grams[length - 2].keys, keys[length - 2][gram.first])
            share = taken + rest[context] * share[suffix]
        costs.append(share)
    return Model(order, _table(grams, costs, backing), round(-np.log2(least) * UNIT))


def _counted(keys: list[Keys], place: Positions, order: int, min_count: int) -> list[_Grams]:
    """From the longest down: what is shorter counts by how many characters it follows."""
    found: list[_Grams] = []
    for length in range(order, 0, -1):
        rows = np.flatnonzero(place >= max(length - 1, 1))
        if length == 1:
            rows = np.arange(len(place))  # BEGIN too: it is a context, though never predicted
        values, first, counts = np.unique(
            keys[length - 1][rows], return_index=True, return_counts=True
        )
        first = rows[first]
        kept = counts >= (min_count if length >= PRUNED_FROM else 1)
        if found:
            of_longer = np.searchsorted(values, keys[length - 1][found[-1].first])
            follows = np.bincount(of_longer, minlength=len(values))
            counts = np.where(follows > 0, follows, counts)  # at a text's beginning it follows none
        if length == 1:
            counts = np.where(place[first] == 0, 0, counts)
        found.append(_Grams(values, first, counts, kept))
    return found[::-1]


def _discount(counts: Positions) -> float:
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return min(max(once / max(once + 2 * twice, 1), 0.1), 0.9)


@kernel
def _keys(codes: Codes, place: Positions, length: int) -> Keys:
    """Of the n-gram that ends at each character; 0 where the text is shorter."""
    keys = np.zeros(len(codes), np.uint64)
    for at in range(len(codes)):
        if place[at] + 1 >= length:
            key = HASH_START
            for back in range(length):
                key = longer(key, codes[at - back])
            keys[at] = key
    return keys


def _table(grams: list[_Grams], shares: list[Values], backing: list[Values]) -> Keys:
    keys = np.concatenate([gram.keys[gram.kept] for gram in grams])
    share = np.concatenate([s[gram.kept] for gram, s in zip(grams, shares, strict=True)])
    weight = np.concatenate([b[gram.kept] for gram, b in zip(grams, backing, strict=True)])
    cost = np.rint(-np.log2(share) * UNIT).astype(np.uint64)
    back = np.rint(-np.log2(np.maximum(weight, 1e-9)) * UNIT).astype(np.uint64)
    slots = 4
    while slots < 1.5 * len(keys):
        slots *= 2
    filled: Keys = _filled(keys, cost | back << np.uint64(32), slots)
    return filled


@kernel
def _filled(keys: Keys, values: Keys, slots: int) -> Keys:
    table = np.zeros((slots, 2), np.uint64)
    for i in range(len(keys)):
        slot = np.int64(keys[i] >> np.uint64(20)) & (slots - 1)
        while table[slot, 0] != 0:
            slot = (slot + 1) & (slots - 1)
        table[slot, 0] = keys[i]
        table[slot, 1] = values[i]
    return table
