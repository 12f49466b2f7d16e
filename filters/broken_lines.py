"""Lines as a page printed them: numbers and running heads of pages, words cut at a line's end,
sentences cut in the middle.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from filters.pieces import Segments
from kernels.compile import inner_kernel, kernel
from kernels.hashing import Bytes

PAGE, HYPHEN, WRAPPED = range(3)
# Lines from one page number to the next. A table of numbers has fewer, and chapters are longer.
PAGE_LINES = (8, 150)
_MAX_NUMBER_BYTES = 24  # "- 1234 -", "Page 1234", "第 1234 页"
_WRAP_CHARS = 15  # of a line that may be cut; shorter ones are headings, names and verses
_MINUS, _COMMA, _DIGIT_0, _DIGIT_9, _a, _z = (ord(char) for char in "-,09az")


@kernel
def cut_lines(
    data: Bytes, segments: Segments
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Of each text, how many lines are PAGE numbers or heads, end in a HYPHEN within a word, or are
    WRAPPED within a sentence: int32[n, 3]; and the first line of the first two kinds, or -1.
    """
    lines = segments.lines
    num_texts = len(lines.offsets) - 1
    counts = np.zeros((num_texts, 3), np.int32)
    firsts = np.full((num_texts, 2), -1, np.int64)
    for text in range(num_texts):
        first, last = lines.offsets[text], lines.offsets[text + 1]
        page, page_line = -1, -1  # the last number that may be one, and where it stood
        for line in range(first, last):
            begin, end = lines.begins[line], lines.ends[line]
            number = -1
            if end - begin <= _MAX_NUMBER_BYTES:
                number = _page_number(data, begin, end)
            if number >= 0:
                between = line - page_line
                follows = page >= 0 and number == page + 1
                if follows and PAGE_LINES[0] <= between <= PAGE_LINES[1]:
                    counts[text, PAGE] += 1
                    for beside in (-1, 1):  # the running head, over or under it
                        if first <= page_line + beside and line + beside < last:
                            head = lines.hashes[line + beside]
                            counts[text, PAGE] += head == lines.hashes[page_line + beside]
                    if firsts[text, PAGE] < 0:
                        firsts[text, PAGE] = line
                page, page_line = number, line
            if line + 1 == last or not _is_next(data, end, lines.begins[line + 1]):
                continue
            after = data[lines.begins[line + 1]]
            ends = data[end - 1]
            goes_on = _is_small(after)
            if ends == _MINUS and goes_on and end - begin > 2 and _is_small(data[end - 2]):
                counts[text, HYPHEN] += 1
                if firsts[text, HYPHEN] < 0:
                    firsts[text, HYPHEN] = line
            elif lines.chars[line] >= _WRAP_CHARS:
                within = (_is_small(ends) or ends == _COMMA) and goes_on
                han = 0xE4 <= after <= 0xE9 and 0xE4 <= data[end - 3] <= 0xE9
                counts[text, WRAPPED] += within or han
    return counts, firsts


@inner_kernel
def _is_small(byte: int) -> bool:
    return _a <= byte <= _z


@kernel
def _is_next(data: Bytes, end: int, begin: int) -> bool:
    """Is there but one line feed between two lines?"""
    feeds = 0
    for at in range(end, begin):
        feeds += data[at] == 10
    return feeds == 1


@kernel
def _page_number(data: Bytes, begin: int, end: int) -> int:
    """The number of a line that holds one, of at most four digits, and else `Page`, 第 and 页, or
    dashes and spaces; -1 for other lines.
    """
    number, digits = 0, 0
    at = begin
    done = False
    while at < end:
        byte = data[at]
        if _DIGIT_0 <= byte <= _DIGIT_9 and not done and digits < 4:
            number = number * 10 + int(byte) - _DIGIT_0
            digits += 1
            at += 1
            continue
        done = digits > 0
        if byte == 0x20 or byte == _MINUS:
            at += 1
        elif digits == 0 and _stands(data, at, end, _PAGE):
            at += len(_PAGE)
        elif digits == 0 and _stands(data, at, end, _NUMBER):
            at += len(_NUMBER)
        elif digits and (_stands(data, at, end, _LEAF) or _stands(data, at, end, _LEAF_HANT)):
            at += len(_LEAF)
        else:
            return -1
    return number if digits else -1


_PAGE, _NUMBER, _LEAF, _LEAF_HANT = (
    np.frombuffer(word.encode(), np.uint8) for word in ("Page", "第", "页", "頁")
)


@kernel
def _stands(data: Bytes, at: int, end: int, word: Bytes) -> bool:
    if at + len(word) > end:
        return False
    same = True
    for i in range(len(word)):
        same &= data[at + i] == word[i]
    return same
