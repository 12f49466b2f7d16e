"""Small numbers for 64-bit keys, in the order in which they come: a hash table on plain arrays.

The caller owns the arrays and begins each text with `table[: 1 << bits] = -1`, so no text pays for
memory, and a short one touches little of it. It keeps half of the slots free, by `fill`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernels.compile import inner_kernel, kernel

Keys = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

MIN_BITS = 6  # of a table that begins


@kernel
def longest(offsets: Offsets) -> int:
    """The most that stands between an offset and the next."""
    most = 0
    for i in range(len(offsets) - 1):
        most = max(most, offsets[i + 1] - offsets[i])
    return most


@kernel
def table_for(most: int) -> Positions:
    """A table that `most` keys leave half free; what stands in it is not yet set."""
    slots = 1 << MIN_BITS
    while slots < 2 * most + 2:
        slots *= 2
    return np.empty(slots, np.int32)


@inner_kernel
def name_of(table: Positions, bits: int, keys: Keys, first: int, count: int, key: np.uint64) -> int:
    """The number of `key` among `keys[first : first + count]`; a new one becomes number `count`.

    Its top bits are its place in the table: they must be mixed.
    """
    slot = key >> np.uint64(64 - bits)
    name = int(table[slot])
    while name >= 0:
        if keys[np.uint64(first + name)] == key:
            return name
        slot = (slot + np.uint64(1)) & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1))
        name = int(table[slot])
    table[slot] = count
    keys[np.uint64(first + count)] = key
    return count


@kernel
def fill(table: Positions, bits: int, keys: Keys, first: int, count: int) -> None:
    """Put numbers 0 to `count` into a table of `1 << bits` slots."""
    table[: 1 << bits] = -1
    for name in range(count):
        slot = np.int64(keys[first + name] >> np.uint64(64 - bits))
        while table[slot] >= 0:
            slot = (slot + 1) & ((1 << bits) - 1)
        table[slot] = name
