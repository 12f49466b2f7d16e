"""The first look for `privacy`: where in a batch something private may stand, from its bytes alone.

One pass that stops at few bytes: @, digits, and the letters that published tokens begin with. What
it marks, the rules of private_numbers.py, private_addresses.py and secrets.py look at; it marks
all that they would find, and of ordinary text some dozens of places in a MB.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernels.compile import inner_kernel, kernel
from kernels.hashing import Bytes

# Bits of what may stand at a mark: which rules look.
AT, NUMBER, DOTTED, COLONS, TOKEN, PASSPORT, ROOM = (1 << bit for bit in range(7))
Marks = npt.NDArray[np.int64]  # [n, 4]: text, first byte, byte after the last, what; bytes of data


def _padded(words: list[str], width: int) -> Bytes:
    return np.array([list(word.encode().ljust(width, b"\0")) for word in words], np.uint8)


# Beginnings of tokens, and at which of their bytes they are looked for: a rare one.
TOKENS = {
    "AKIA": 1,
    "ASIA": 3,
    "AKID": 1,
    "AIza": 2,
    "LTAI": 0,
    "xox": 0,
    "xapp-": 0,
    "eyJ": 2,
    "ghp_": 3,
    "gho_": 3,
    "ghu_": 3,
    "ghs_": 3,
    "ghr_": 3,
    "github_pat_": 6,
    "hf_": 2,
    "sk-": 2,
    "sk_live_": 2,
    "rk_live_": 2,
    "npm_": 3,
    "glpat-": 5,
    "pypi-": 4,
    "aws_secret_": 3,
    "AWS_SECRET_": 3,
    "-----BEGIN": 5,
}
_TOKENS = _padded(list(TOKENS), 12)
_TOKEN_LENGTHS = np.array([len(token) for token in TOKENS])
_TOKEN_AT = np.array(list(TOKENS.values()))
_RARE = np.array([ord(token[at]) for token, at in TOKENS.items()], np.uint8)

_AT, _DIGIT, _COLON, _LETTER = 1, 2, 3, 4
_FIRST = np.zeros(256, np.uint8)
_FIRST[[ord("@"), ord(":")]] = _AT, _COLON
_FIRST[ord("0") : ord("9") + 1] = _DIGIT
_FIRST[_RARE] = _LETTER
_HEX = np.zeros(256, np.uint8)
_HEX[[ord(char) for char in "0123456789abcdefABCDEF"]] = 1
_NAME = np.zeros(256, np.uint8)  # of what a number or a token is no part of a longer name
_NAME[[*range(0x30, 0x3A), *range(0x41, 0x5B), *range(0x61, 0x7B)]] = 1
_HOUSES = _padded(["室", "户", "戶"], 3)
_PASSPORTS = _padded(["passport", "护照", "護照"], 8)
_PASSPORT_LENGTHS = np.array([8, 6, 6])
PASSPORT_REACH = 40  # bytes before a number in which the word must stand


@kernel
def marks(data: Bytes, offsets: npt.NDArray[np.int64]) -> Marks:
    """Marks of all texts, in order."""
    found = np.empty((256, 4), np.int64)
    size = 0
    for text in range(len(offsets) - 1):
        begin, stop = offsets[text], offsets[text + 1]
        at = _next(data, begin, stop)
        while at < stop:
            what, first, last = _look(data, begin, at, stop)
            if what:
                if size == len(found):
                    found = _twice_as_long(found)
                found[size, 0] = text
                found[size, 1] = first
                found[size, 2] = last
                found[size, 3] = what
                size += 1
            at = _next(data, last, stop)
    return found[:size]


@kernel
def _next(data: Bytes, at: int, stop: int) -> int:
    """The next byte that may begin something: a loop of its own, four times as fast."""
    while at < stop and _FIRST[data[at]] == 0:
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
    kind = _FIRST[data[at]]
    if kind == _DIGIT:
        end, shape = _cluster(data, begin, at, stop)
        what = 0
        if shape & 1 or (shape & 4 and at > begin and data[at - 1] == 0x2B):
            what |= NUMBER
        if shape & 2:
            what |= DOTTED
        if shape & 8 and _passport_before(data, begin, at):
            what |= PASSPORT
        if end + 3 <= stop and data[end] >= 0xE5 and _is_one_of(data, end, _HOUSES):
            what |= ROOM
        return what, at, end
    if kind == _AT:
        between = at > begin and at + 1 < stop and _NAME[data[at - 1]] and _NAME[data[at + 1]]
        return AT if between else 0, at, at + 1
    if kind == _COLON:
        if at - begin >= 4 and _public_group(data, begin, at):
            return COLONS, at - 4, at + 1
        return 0, at, at + 1
    for token in range(len(_TOKEN_LENGTHS)):
        if data[at] != _RARE[token]:
            continue
        start, length = at - _TOKEN_AT[token], _TOKEN_LENGTHS[token]
        inside = start >= begin and start + length <= stop
        if inside and _stands(data, start, _TOKENS[token], length):
            return TOKEN, start, at + 1
    return 0, at, at + 1


@kernel
def _cluster(data: Bytes, begin: int, at: int, stop: int) -> tuple[int, int]:
    """The end of the digits from `at` on, with what may stand between those of one number; and
    their shape: 1 as numbers are that rules know, 2 four groups with dots, 4 eight digits or more,
    8 as long as that of a passport.

    Ten digits in a row count where no letter, dot or = stands before: hashes and decimals are long.
    """
    end, shape, digits, dots, longest = at, 0, 0, 0, 0
    one = two = three = 0  # lengths of the last groups
    loose = at == begin or not (_NAME[data[at - 1]] or data[at - 1] in (0x2E, 0x3D, 0x5F))
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
    return at - 4 == begin or not (_NAME[data[at - 5]] or data[at - 5] == 0x3A)


@kernel
def _passport_before(data: Bytes, begin: int, at: int) -> bool:
    for first in range(max(begin, at - PASSPORT_REACH), at):
        for word in range(len(_PASSPORT_LENGTHS)):
            length = _PASSPORT_LENGTHS[word]
            if first + length <= at and _stands(data, first, _PASSPORTS[word], length):
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


@kernel
def _stands(data: Bytes, first: int, word: Bytes, length: int) -> bool:
    """Does the word stand there, its small letters in any case?"""
    for i in range(length):
        byte = data[first + i]
        if byte != word[i] and not (0x61 <= word[i] <= 0x7A and byte + 32 == word[i]):
            return False
    return True
