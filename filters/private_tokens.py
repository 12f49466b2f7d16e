"""Tokens of published form, for the first look of private_marks.py: where one may begin."""

from __future__ import annotations

import numpy as np

from kernels.compile import inner_kernel, kernel
from kernels.hashing import Bytes


def padded(words: list[str], width: int) -> Bytes:
    return np.array([list(word.encode().ljust(width, b"\0")) for word in words], np.uint8)


# Beginnings of tokens, and at which of their bytes they are looked for: a rare one, not the first.
TOKENS = {
    "AKIA": 1,
    "ASIA": 3,
    "AKID": 1,
    "AIza": 2,
    "LTAI": 1,
    "xox": 2,
    "xapp-": 4,
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
    "AccountKey=": 7,
    "AccessKey=": 6,
    "GOCSPX-": 5,
    "SG.": 1,
    "dop_v1_": 4,
    "whsec_": 5,
    "dckr_pat_": 4,
    "shpat_": 5,
}
_TOKENS = padded(list(TOKENS), 12)
_TOKEN_LENGTHS = np.array([len(token) for token in TOKENS])
_TOKEN_AT = np.array(list(TOKENS.values()))
RARE = np.array([ord(token[at]) for token, at in TOKENS.items()], np.uint8)

NAME = np.zeros(256, np.bool_)  # of what a number or a token is no part of a longer name
NAME[[*range(0x30, 0x3A), *range(0x41, 0x5B), *range(0x61, 0x7B)]] = True
_OF_PART = NAME.copy()  # of what the three parts of a web token are made
_OF_PART[[ord("-"), ord("_")]] = True
PART_CHARS = 4_000  # of each after its `eyJ` at most; 8 at least


@kernel
def token_at(data: Bytes, begin: int, at: int, stop: int) -> int:
    """Where a token begins whose rare byte stands at `at`; -1: none does."""
    for token in range(len(_TOKEN_LENGTHS)):
        if data[at] != RARE[token]:
            continue
        start, length = at - _TOKEN_AT[token], _TOKEN_LENGTHS[token]
        inside = start >= begin and start + length <= stop
        if inside and stands(data, start, _TOKENS[token], length):
            return int(start)
    return -1


@kernel
def stands(data: Bytes, first: int, word: Bytes, length: int) -> bool:
    """Does the word stand there, its small letters in any case?"""
    for i in range(length):
        byte = data[first + i]
        if byte != word[i] and not (0x61 <= word[i] <= 0x7A and byte + 32 == word[i]):
            return False
    return True


@inner_kernel
def is_web_token(data: Bytes, first: int) -> bool:
    """Of a token, for it alone begins so: `eyJ`."""
    begins: bool = data[first] == 0x65 and data[first + 1] == 0x79 and data[first + 2] == 0x4A
    return begins


@inner_kernel
def is_key(data: Bytes, first: int) -> bool:
    """Likewise `sk-`, which counts only with a digit."""
    begins: bool = data[first] == 0x73 and data[first + 1] == 0x6B and data[first + 2] == 0x2D
    return begins


@kernel
def digit_or_end(data: Bytes, at: int, stop: int) -> int:
    """The first digit of a part of a token, or where the part ends."""
    while at < stop and _OF_PART[data[at]] and not 0x30 <= data[at] <= 0x39:
        at += 1
    return at


@kernel
def web_token(data: Bytes, first: int, stop: int) -> tuple[int, bool]:
    """Of a part that begins `eyJ` at `first`: its end, and whether two more follow as they must."""
    part_end = _part_end(data, first, stop, stop)
    second = part_end + 1
    if second + 3 > stop or data[part_end] != 0x2E:
        return part_end, False
    if not is_web_token(data, second):
        return part_end, False
    end = _part_end(data, second + 3, stop, second + 4 + PART_CHARS)
    if not 8 <= end - second - 3 <= PART_CHARS or end == stop or data[end] != 0x2E:
        return part_end, False
    return part_end, _part_end(data, end + 1, stop, end + 9) == end + 9


@inner_kernel
def _part_end(data: Bytes, at: int, stop: int, limit: int) -> int:
    while at < min(stop, limit) and _OF_PART[data[at]]:
        at += 1
    return at
