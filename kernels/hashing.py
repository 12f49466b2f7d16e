"""64-bit hashes of spans of bytes, eight bytes a step, for comparing pieces of a text.

Nothing of them is stored, and nothing depends on the machine's byte order. Two different pieces of
one document of 10 million pieces have the same hash with a probability of 3e-6.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernels.compile import inner_kernel, kernel

Bytes = npt.NDArray[np.uint8]

HASH_START = np.uint64(0xCBF29CE484222325)
HASH_PRIME = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd
_HALF = np.uint64(32)

NOT_ASCII = _TOP = np.uint64(0x8080808080808080)
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_FROM_A = np.uint64(0x3F3F3F3F3F3F3F3F)  # + a byte from "A" on sets the top bit
_CASE = np.uint64(0x2020202020202020)
_FROM_a = np.uint64(0x1F1F1F1F1F1F1F1F)
_ABOVE_z = np.uint64(0x0505050505050505)
_FROM_0 = np.uint64(0x5050505050505050)
_ABOVE_9 = np.uint64(0x4646464646464646)
_COUNT = np.uint64(0x0001020304050607)
_ONES = np.uint64(0x0101010101010101)
_ABOVE_Z = np.uint64(0x2525252525252525)  # + a byte above "Z" sets it


@inner_kernel
def load8(data: Bytes, at: int, end: int) -> np.uint64:
    """Bytes `at` to `at + 8` as a little-endian number, zeros from `end` on.

    One load, as the compiler sees only where no index can be negative: numba would count a negative
    one from the end, eight times, and the load take six times as long.
    """
    value = np.uint64(0)
    here = np.uint64(at)
    if at + 8 <= end:
        for i in range(8):
            value |= np.uint64(data[here + np.uint64(i)]) << np.uint64(8 * i)
        return value
    if at + 8 <= len(data):
        for i in range(8):
            value |= np.uint64(data[here + np.uint64(i)]) << np.uint64(8 * i)
        return value & ((np.uint64(1) << np.uint64(8 * (end - at))) - np.uint64(1))
    for i in range(end - at):
        value |= np.uint64(data[here + np.uint64(i)]) << np.uint64(8 * i)
    return value


@inner_kernel
def mix(value: np.uint64, chunk: np.uint64) -> np.uint64:
    value = (value ^ chunk) * HASH_PRIME
    return value ^ (value >> _HALF)


@kernel
def span_hash(data: Bytes, begin: int, end: int) -> np.uint64:
    """Hash of `data[begin:end]`."""
    value = HASH_START ^ np.uint64(end - begin)
    at = begin
    while at < end:
        value = mix(value, load8(data, at, end))
        at += 8
    return value


@inner_kernel
def alphanumeric(chunk: np.uint64) -> np.uint64:
    """The top bit of each of eight bytes that is an ASCII letter or digit."""
    low = chunk & _LOW
    cased = low | _CASE
    digit = (low + _FROM_0) & ~(low + _ABOVE_9)
    letter = (cased + _FROM_a) & ~(cased + _ABOVE_z)
    return (digit | letter) & ~chunk & _TOP


@inner_kernel
def digit_bytes(chunk: np.uint64) -> np.uint64:
    """The top bit of each of eight bytes that is an ASCII digit."""
    low = chunk & _LOW
    return (low + _FROM_0) & ~(low + _ABOVE_9) & ~chunk & _TOP


@inner_kernel
def lead_bytes(chunk: np.uint64) -> np.uint64:
    """The top bit of each of eight bytes from C0 on, which begin a character that is not ASCII."""
    return chunk & (chunk << np.uint64(1)) & _TOP


@inner_kernel
def long_leads(chunk: np.uint64) -> np.uint64:
    """The top bit of each of eight bytes from E0 on: leads of three bytes and more."""
    return lead_bytes(chunk) & (chunk << np.uint64(2))


@inner_kernel
def num_bytes(tops: np.uint64) -> int:
    """Of how many of eight bytes the top bit is set; no other bits are."""
    return int(((tops >> np.uint64(7)) * _ONES) >> np.uint64(56))


@inner_kernel
def first_byte(tops: np.uint64) -> int:
    """Which of eight bytes is the first whose top bit is set; no other bits are."""
    first = tops & (~tops + np.uint64(1))
    return int(((first >> np.uint64(7)) * _COUNT) >> np.uint64(56))


@inner_kernel
def ascii_word(data: Bytes, begin: int, end: int) -> tuple[int, int, np.uint64]:
    """The ASCII letters and digits from `begin` on: how many, whether a letter is among them, and
    their `folded_hash`. Eight are judged at once, so most words cost no mispredicted branch.
    """
    value = HASH_START
    letters = np.uint64(0)
    at = begin
    while True:
        raw = load8(data, at, end)
        low = raw & _LOW
        digit = (low + _FROM_0) & ~(low + _ABOVE_9)
        low |= _CASE
        letter = (low + _FROM_a) & ~(low + _ABOVE_z)
        chunk = raw | _CASE  # digits have that bit
        other = ~((letter | digit) & ~chunk) & _TOP
        if other == 0:
            letters |= letter
            value = mix(value, chunk)
            at += 8
            continue
        first = other & (~other + np.uint64(1))  # the top bit of the first other byte
        mask = (first >> np.uint64(7)) - np.uint64(1)
        if mask != 0:
            value = mix(value, chunk & mask)
            letters |= letter & mask
            at += int(((first >> np.uint64(7)) * _COUNT) >> np.uint64(56))
        return at - begin, int(letters & _TOP != 0), mix(value, np.uint64(at - begin))


@inner_kernel
def ascii_letters(data: Bytes, begin: int, end: int) -> tuple[int, np.uint64]:
    """The ASCII letters from `begin` on: how many, and a hash of them in lower case."""
    value = HASH_START
    at = begin
    while True:
        raw = load8(data, at, end)
        chunk = raw | _CASE
        low = chunk & _LOW
        other = ~((low + _FROM_a) & ~(low + _ABOVE_z) & ~raw) & _TOP
        if other == 0:
            value = mix(value, chunk)
            at += 8
            continue
        first = (other & (~other + np.uint64(1))) >> np.uint64(7)
        at += int((first * _COUNT) >> np.uint64(56))
        return at - begin, mix(value, chunk & (first - np.uint64(1)))


@kernel
def fold(chunk: np.uint64) -> np.uint64:
    """Eight bytes with A-Z as a-z (the lower byte of every pair decides for itself)."""
    low = chunk & _LOW
    upper = (low + _FROM_A) & ~(low + _ABOVE_Z) & ~chunk & _TOP
    return chunk | (upper >> np.uint64(2))


@kernel
def folded_hash(data: Bytes, begin: int, end: int) -> np.uint64:
    """Hash of `data[begin:end]` with A-Z folded to a-z."""
    value = HASH_START
    at = begin
    while at < end:
        value = mix(value, fold(load8(data, at, end)))
        at += 8
    return mix(value, np.uint64(end - begin))
