"""The first look for `privacy`: where in a batch something private may stand, from its bytes alone.

One pass that stops at few bytes: @, digits, and rare letters of published tokens, where the byte
before fits. What it marks, the rules of private_numbers.py, private_addresses.py, private_homes.py
and secrets.py look at; it marks all that they would find, and of ordinary text some dozens of
places in a MB.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from filters.private_tokens import (
    NAME,
    PART_CHARS,
    RARE,
    TOKENS,
    digit_or_end,
    is_key,
    is_web_token,
    padded,
    stands,
    token_at,
    web_token,
)
from kernels.compile import inner_kernel, kernel
from kernels.hashing import Bytes

# Bits of what may stand at a mark: which rules look.
AT, NUMBER, DOTTED, COLONS, TOKEN, PASSPORT, ROOM, WIDE, STREET = (1 << bit for bit in range(9))
Marks = npt.NDArray[np.int64]  # [n, 4]: text, first byte, byte after the last, what; bytes of data


_HEX = np.zeros(256, np.bool_)
_HEX[[ord(char) for char in "0123456789abcdefABCDEF"]] = True
_JOINS = np.zeros(256, np.bool_)  # ASCII that may stand between the groups of a number
_JOINS[[ord(char) for char in " -.()"]] = True

# Kinds of a place: from _LETTER on a bit for each rare letter, last that of full-width digits.
_DIGIT, _AT, _COLON, _LETTER, _WIDE = 1, 2, 4, 8, 1 << 15


def _stops() -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]:
    """What may stand at a byte by itself, and by the byte before it: both must say so."""
    here, before = np.zeros(256, np.uint16), np.zeros(256, np.uint16)
    here[ord("0") : ord("9") + 1] = _DIGIT
    before[:] = _DIGIT
    here[ord("@")] = _AT
    before[NAME] |= _AT
    here[ord(":")] = _COLON
    before[_HEX] |= _COLON
    here[0x90:0x9A] = _WIDE  # of EF BC 90 to 99
    before[0xBC] |= _WIDE
    for bit, rare in enumerate(dict.fromkeys(RARE.tolist())):
        here[rare] = _LETTER << bit
        for token, at in TOKENS.items():
            if ord(token[at]) == rare:
                before[[ord(token[at - 1].lower()), ord(token[at - 1].upper())]] |= _LETTER << bit
    return here, before


_HERE, _BEFORE = _stops()
_HOUSES = padded(["室", "户", "戶"], 3)
_BLOCKS = padded(["楼", "樓", "栋", "棟", "幢", "座", "元", "弄"], 3)  # how a name of a block ends
_BLOCK_REACH = 51  # bytes before a room: 12 characters, 4 digits, and that one
_PASSPORTS = padded(["passport", "护照", "護照"], 8)
_PASSPORT_LENGTHS = np.array([8, 6, 6])
PASSPORT_REACH = 40  # bytes before a number in which the word must stand


@kernel
def marks(data: Bytes, offsets: npt.NDArray[np.int64]) -> Marks:
    """Marks of all texts, in order."""
    found = np.empty((256, 4), np.int64)
    size = 0
    for text in range(len(offsets) - 1):
        begin, stop = offsets[text], offsets[text + 1]
        part_end, whole = begin, False  # of the last that may begin a web token
        key_end = begin  # ... of what follows `sk-`, up to a digit
        at = _next(data, begin, begin, stop)
        while at < stop:
            what, first, last = _look(data, begin, at, stop)
            if what == TOKEN and is_web_token(data, first):
                if first >= part_end:  # else seen with one that began before
                    part_end, whole = web_token(data, first, stop)
                alone = first == begin or not NAME[data[first - 1]]
                if not (whole and alone and 8 <= part_end - first - 3 <= PART_CHARS):
                    what = 0
                whole &= what == 0  # what begins later in this part is a piece of it
            elif what == TOKEN and is_key(data, first):
                if first >= key_end:
                    key_end = digit_or_end(data, first, stop)
                if key_end == stop or not 0x30 <= data[key_end] <= 0x39:
                    what = 0  # no digit
            if what:
                if size == len(found):
                    found = _twice_as_long(found)
                found[size, 0] = text
                found[size, 1] = first
                found[size, 2] = last
                found[size, 3] = what
                size += 1
            at = _next(data, begin, last, stop)
    return found[:size]


@kernel
def _next(data: Bytes, begin: int, at: int, stop: int) -> int:
    """The next byte that may begin something: a loop of its own, four times as fast."""
    before = _BEFORE[data[at - 1]] if at > begin else _BEFORE[0]
    while at < stop and _HERE[data[np.uint64(at)]] & before == 0:
        before = _BEFORE[data[np.uint64(at)]]
        at += 1
    return at


@kernel
def _twice_as_long(found: Marks) -> Marks:
    larger = np.empty((2 * len(found), 4), np.int64)
    larger[: len(found)] = found
    return larger


@kernel
def _look(data: Bytes, begin: int, at: int, stop: int) -> tuple[int, int, int]:
    """What may stand at a byte (0: nothing), its first byte, and where to go on."""
    kind = _HERE[data[at]]
    if kind == _DIGIT:
        end = at + 1
        while end < stop and 0x30 <= data[end] <= 0x39:
            end += 1
        what = STREET if end - at == 5 and _state_before(data, begin, at) else 0
        if end - at < 7 and end + 1 < stop and data[end] < 0x80 and _ends_number(data, end):
            # A short number by itself, as nearly all are.
            return what | (STREET if _inward_code(data, begin, end, stop) else 0), at, end
        end, shape = _cluster(data, begin, at, stop)
        what |= STREET if _inward_code(data, begin, end, stop) else 0
        if shape & 1 or (shape & 4 and at > begin and data[at - 1] == 0x2B):
            what |= NUMBER
        if shape & 2:
            what |= DOTTED
        if shape & 8 and _passport_before(data, begin, at):
            what |= PASSPORT
        if end + 3 <= stop and data[end] >= 0xE5 and _is_one_of(data, end, _HOUSES):
            what |= ROOM if _block_before(data, begin, end) else 0
        return what, at, end
    if kind == _WIDE:
        return _wide(data, begin, at, stop)
    if kind == _AT:
        return AT if at + 1 < stop and NAME[data[at + 1]] else 0, at, at + 1
    if kind == _COLON:
        if at - begin >= 4 and _public_group(data, begin, at):
            return COLONS, at - 4, at + 1
        return 0, at, at + 1
    start = token_at(data, begin, at, stop)
    return TOKEN if start >= 0 else 0, start, at + 1


@kernel
def _wide(data: Bytes, begin: int, at: int, stop: int) -> tuple[int, int, int]:
    """Ten full-width digits and more from the one whose last byte is at `at`, with what may stand
    between those of one number."""
    start, end, digits = at - 2, at + 1, 1
    if start < begin or data[start] != 0xEF:
        return 0, at, at + 1
    while True:
        after = end + _between(data, end, stop) if end < stop else stop
        if after + 3 > stop or data[after] != 0xEF or data[after + 1] != 0xBC:
            break
        if not 0x90 <= data[after + 2] <= 0x99:
            break
        end, digits = after + 3, digits + 1
    return WIDE if digits >= 10 else 0, start, end


@kernel
def _block_before(data: Bytes, begin: int, end: int) -> bool:
    """Does a block of flats stand before a room, near enough for its rule?"""
    for at in range(max(begin, end - _BLOCK_REACH), end - 3):
        if data[at] >= 0xE5 and _is_one_of(data, at, _BLOCKS):
            return True
    return False


@inner_kernel
def _state_before(data: Bytes, begin: int, at: int) -> bool:
    """Do two capitals stand before a number, as in IL 62704?"""
    return (
        at - begin >= 4
        and data[at - 1] == 0x20
        and 0x41 <= data[at - 2] <= 0x5A
        and 0x41 <= data[at - 3] <= 0x5A
    )


@inner_kernel
def _inward_code(data: Bytes, begin: int, end: int, stop: int) -> bool:
    """Is the last digit the first of the inward part of a British code, as in NW1 6XE?"""
    return (
        begin <= end - 2
        and end + 2 <= stop
        and 0x41 <= data[end] <= 0x5A
        and 0x41 <= data[end + 1] <= 0x5A
        and data[end - 2] == 0x20
    )


@inner_kernel
def _ends_number(data: Bytes, at: int) -> bool:
    """Does ASCII stand there with which no number of several groups goes on?"""
    return not _JOINS[data[at]] or (NAME[data[at + 1]] and data[at + 1] > 0x39)


@kernel
def _cluster(data: Bytes, begin: int, at: int, stop: int) -> tuple[int, int]:
    """The end of the digits from `at` on, with what may stand between those of one number; and
    their shape: 1 as numbers are that rules know, 2 four groups with dots, 4 eight digits or more,
    8 as long as that of a passport.

    Ten digits in a row count where no letter, dot or = stands before: hashes and decimals are long.
    """
    end, shape, digits, dots, longest = at, 0, 0, 0, 0
    one = two = three = 0  # lengths of the last groups
    loose = at == begin or not (NAME[data[at - 1]] or data[at - 1] in (0x2E, 0x3D, 0x5F))
    while True:
        first = end
        while end < stop and 0x30 <= data[end] <= 0x39:
            end += 1
        three, two, one = two, one, end - first
        digits += one
        longest = max(longest, one)
        grouped = three == 3 and two in (3, 4) and one == 4
        grouped |= three == 4 and ((two == 4 and one == 4) or (two == 6 and one == 5))
        alone = one >= 10 or (7 <= one <= 8 and 2 <= two <= 4)
        shape |= grouped or (alone and loose)
        after = end
        while after < stop and after - end < 6:
            step = _between(data, after, stop)
            if step == 0:
                break
            after += step
        if after == end or after >= stop or not 0x30 <= data[after] <= 0x39:
            break
        loose = data[after - 1] != 0x2E
        dots += after - end == 1 and not loose
        end = after
    shape |= 2 * (dots >= 3) | 4 * (digits >= 8) | 8 * (7 <= longest <= 9)
    return end, shape


@inner_kernel
def _between(data: Bytes, at: int, stop: int) -> int:
    """Bytes of a character that may stand between groups of digits: space - . ( ) and the wide
    brackets and dashes; 0 for any other."""
    byte = data[at]
    if byte == 0x20 or byte == 0x2D or byte == 0x2E or byte == 0x28 or byte == 0x29:
        return 1
    if byte == 0xEF and at + 2 < stop and data[at + 1] == 0xBC:
        return 3 if data[at + 2] in (0x88, 0x89, 0x8D) else 0
    if byte == 0xE2 and at + 2 < stop and data[at + 1] == 0x80:
        return 3 if data[at + 2] in (0x93, 0x94) else 0
    return 0


@kernel
def _public_group(data: Bytes, begin: int, at: int) -> bool:
    """Do the four bytes before a colon begin an address of 2000::/3, the public part of IPv6?"""
    if data[at - 4] != 0x32 and data[at - 4] != 0x33:
        return False
    for i in range(at - 3, at):
        if not _HEX[data[i]]:
            return False
    return at - 4 == begin or not (NAME[data[at - 5]] or data[at - 5] == 0x3A)


@kernel
def _passport_before(data: Bytes, begin: int, at: int) -> bool:
    for first in range(max(begin, at - PASSPORT_REACH), at):
        for word in range(len(_PASSPORT_LENGTHS)):
            length = _PASSPORT_LENGTHS[word]
            if first + length <= at and stands(data, first, _PASSPORTS[word], length):
                return True
    return False


@inner_kernel
def _is_one_of(data: Bytes, at: int, characters: Bytes) -> bool:
    for row in range(len(characters)):
        if (
            data[at] == characters[row, 0]
            and data[at + 1] == characters[row, 1]
            and data[at + 2] == characters[row, 2]
        ):
            return True
    return False
