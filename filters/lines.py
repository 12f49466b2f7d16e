"""Signal group `lines`: how long lines are, and which of them are no prose.

RefinedWeb and DCLM take lines out (capitals, numbers, counters, single words) and drop a page that
loses more than a twentieth of its words. Here nothing is taken out: the group says how many lines
each of the rules would take, and which share of the words.

Lines are stripped, and those without text are not counted, so neither CRLF nor blank lines change a
measure. Lengths that were published for English stand here in a unit that holds for Chinese too:
mC4's 200 characters are 200 bytes, of which a Han character has three, about as much as it says;
the two words that a line must have are three Han characters, 1.6 for a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from filters.columns import Signal
from filters.names import Positions
from filters.pieces import Segments
from filters.segments import Texts
from kernels.cache import kept_arrays
from kernels.compile import kernel
from kernels.hashing import Bytes, load8

LONG_LINE = 200  # bytes of UTF-8
SHORT_LINE = {"en": 2, "zh": 3, "ja": 3}  # words that a line must have; other languages as English

# How a line ends that leads to more text: MAP-NEO's four, and how other pages put it.
READ_MORE = (
    *(
        "readmore",
        "read more",
        "show more",
        "展开",
        "展開",
        "更多",
        "。。。",
        "阅读全文",
        "閱讀全文",
    ),
    *("查看全文", "展开全文"),
)
# Lines that count readers: DCLM's pattern, and the same in Chinese, number first or last.
_NUMBER = r"[0-9][0-9,.]*\s*[KMBkmbwW千万萬亿億]?\+?"
COUNTED = (
    *("likes", "shares", "comments", "retweets", "reposts", "quotes", "bookmarks", "upvotes"),
    *("downvotes", "downloads", "views", "followers"),
    *("点赞", "點讚", "赞", "讚", "喜欢", "喜歡", "评论", "評論", "分享", "转发", "轉發", "浏览"),
    *("瀏覽", "阅读", "閱讀", "观看", "觀看", "播放", "收藏", "下载", "下載", "粉丝", "粉絲"),
    *("关注", "關注", "回复", "回覆"),
)
_WORD = "|".join(COUNTED)
COUNTER = re.compile(
    rf"\W*(?:{_NUMBER}\s*[次条條个個人]?\s*(?:{_WORD})|(?:{_WORD})\W*{_NUMBER}\s*[次条條个個人]?)\W*",
    re.I,
)
COUNTER_BYTES = 64  # a longer line is none

RATIO = pa.float32()
COUNT = pa.int32()
_JUICER = "data-juicer"
_DCLM = "RefinedWeb, Penedo et al. 2023, arXiv:2306.01116; DCLM dclm_baseline_refinedweb.yaml"
COLUMNS: dict[str, Signal] = {
    "mean_chars": Signal(
        RATIO, "characters", "mean length of a line", f"ChineseWebText; {_JUICER}"
    ),
    "max_chars": Signal(COUNT, "characters", "length of the longest line", _JUICER),
    "num_long": Signal(COUNT, "lines", "lines of at least 200 bytes", "mC4, Xue et al. 2020"),
    "read_more_share": Signal(RATIO, "lines", "lines that end in READ_MORE", "MAP-NEO filter.py"),
    "upper_share": Signal(RATIO, "lines", "lines of more than half A to Z", _DCLM),
    "numeric_share": Signal(RATIO, "lines", "lines of digits alone", _DCLM),
    "counter_share": Signal(RATIO, "lines", "lines that count readers (COUNTER)", _DCLM),
    "short_share": Signal(RATIO, "lines", "lines of under 2 words (zh, ja: 3)", _DCLM),
    "removed_word_share": Signal(RATIO, "words", "words of these four kinds of lines", _DCLM),
}

# Of eight bytes in a number: see kernels/hashing.py.
_LOW, _TOP = np.uint64(0x7F7F7F7F7F7F7F7F), np.uint64(0x8080808080808080)
_FROM_A, _ABOVE_Z = np.uint64(0x3F3F3F3F3F3F3F3F), np.uint64(0x2525252525252525)
_FROM_0, _ABOVE_9 = np.uint64(0x5050505050505050), np.uint64(0x4646464646464646)
_ONES, _SEVEN, _LAST = np.uint64(0x0101010101010101), np.uint64(7), np.uint64(56)

# Bits of a line.
_UPPER, _NUMERIC, _COUNTER, _SHORT, _MORE = 1, 2, 4, 8, 16
_REMOVED = _UPPER | _NUMERIC | _COUNTER | _SHORT


def _endings() -> tuple[Bytes, npt.NDArray[np.int64]]:
    """READ_MORE in UTF-8, written to the right of each row, and their lengths."""
    longest = max(len(phrase.encode()) for phrase in READ_MORE)
    rows = [list(phrase.encode().rjust(longest, b"\0")) for phrase in READ_MORE]
    return np.array(rows, np.uint8), np.array([len(phrase.encode()) for phrase in READ_MORE])


_ENDINGS, _ENDING_LENGTHS = _endings()
_WIDTH = _ENDINGS.shape[1]
_LAST_BYTES = np.zeros(256, np.bool_)
_LAST_BYTES[[*_ENDINGS[:, -1], *b"ERW"]] = True


@kernel
def _slot(first: int, second: int, third: int) -> int:
    """Three bytes, letters in lower case, as a place in `_BEGINNINGS`."""
    return ((first | 0x20) * 961 + (second | 0x20) * 31 + (third | 0x20)) & 0xFFF


def _beginnings() -> tuple[npt.NDArray[np.bool_]]:
    """By `_slot` of the first three bytes of COUNTED."""
    found = np.zeros(1 << 12, np.bool_)
    found[[_slot(*(word.encode() + b"  ")[:3]) for word in COUNTED]] = True
    return (found,)


(_BEGINNINGS,) = kept_arrays([__file__], _beginnings)


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    listed = pc.index_in(columns["lang"], value_set=pa.array(list(SHORT_LINE)))
    numbers = np.array([*SHORT_LINE.values(), SHORT_LINE["en"]], np.int32)
    fewest = numbers[pc.fill_null(listed, len(SHORT_LINE)).to_numpy(zero_copy_only=False)]
    lines = texts.segments.lines
    kinds = _kinds(texts.data, texts.segments, fewest)
    for line in np.flatnonzero(kinds & _COUNTER).tolist():  # few: they hold a digit and such a word
        found = texts.data[lines.begins[line] : lines.ends[line]].tobytes().decode()
        if COUNTER.fullmatch(found) is None:
            kinds[line] &= ~np.uint8(_COUNTER)
    ratios = np.zeros((len(texts), len(COLUMNS) - 2), np.float32)
    counts = np.zeros((len(texts), 2), np.int32)
    _measure(texts.segments, kinds, ratios, counts)
    named = iter(ratios.T)
    mean = next(named).copy()
    rest = {name: column.copy() for name, column in zip(list(COLUMNS)[3:], named, strict=True)}
    return {
        "mean_chars": mean,
        "max_chars": counts[:, 0].copy(),
        "num_long": counts[:, 1].copy(),
        **rest,
    }


@kernel
def _kinds(data: Bytes, segments: Segments, fewest: Positions) -> Bytes:
    """Bits of each line; _COUNTER where it may be one."""
    lines = segments.lines
    kinds = np.zeros(lines.offsets[len(fewest)], np.uint8)
    for text in range(len(fewest)):
        for line in range(lines.offsets[text], lines.offsets[text + 1]):
            begin, end = lines.begins[line], lines.ends[line]
            upper, digits = _capitals_and_digits(data, begin, end)
            kind = 0
            if 2 * upper > lines.chars[line]:
                kind |= _UPPER
            if digits == lines.chars[line]:
                kind |= _NUMERIC
            elif digits > 0 and end - begin <= COUNTER_BYTES and _may_count(data, begin, end):
                kind |= _COUNTER
            if lines.words[line] < fewest[text]:
                kind |= _SHORT
            if _LAST_BYTES[data[end - 1]] and _leads_on(data, begin, end):
                kind |= _MORE
            kinds[line] = kind
    return kinds


@kernel
def _capitals_and_digits(data: Bytes, begin: int, end: int) -> tuple[int, int]:
    """How many bytes are A to Z, and 0 to 9; eight at once."""
    capitals = digits = np.uint64(0)
    at = begin
    while at < end:
        chunk = load8(data, at, end)
        low = chunk & _LOW
        capitals += ((low + _FROM_A & ~(low + _ABOVE_Z) & ~chunk & _TOP) >> _SEVEN) * _ONES >> _LAST
        digits += ((low + _FROM_0 & ~(low + _ABOVE_9) & ~chunk & _TOP) >> _SEVEN) * _ONES >> _LAST
        at += 8
    return int(capitals), int(digits)


@kernel
def _may_count(data: Bytes, begin: int, end: int) -> bool:
    """Does a word of COUNTED begin somewhere, as far as three bytes tell?"""
    found = False
    for at in range(begin, end - 2):
        first = np.uint64(at)
        second, third = first + np.uint64(1), first + np.uint64(2)
        found |= _BEGINNINGS[_slot(data[first], data[second], data[third])]
    return found


@kernel
def _lower(byte: int) -> int:
    return byte + 0x20 if 0x41 <= byte <= 0x5A else byte


@kernel
def _leads_on(data: Bytes, begin: int, end: int) -> bool:
    """Does `data[begin:end]` end in one of READ_MORE, in any case?"""
    for phrase in range(len(_ENDING_LENGTHS)):
        length = _ENDING_LENGTHS[phrase]
        if length > end - begin:
            continue
        i = 1
        while i <= length and _lower(data[end - i]) == _ENDINGS[phrase, _WIDTH - i]:
            i += 1
        if i > length:
            return True
    return False


@kernel
def _measure(
    segments: Segments, kinds: Bytes, ratios: npt.NDArray[np.float32], counts: Positions
) -> None:
    lines = segments.lines
    for text in range(len(ratios)):
        first, last = lines.offsets[text], lines.offsets[text + 1]
        chars = longest = num_long = more = upper = numeric = counters = short = 0
        words = removed = 0
        for line in range(first, last):
            kind = kinds[line]
            chars += lines.chars[line]
            longest = max(longest, lines.chars[line])
            num_long += lines.ends[line] - lines.begins[line] >= LONG_LINE
            more += kind & _MORE != 0
            upper += kind & _UPPER != 0
            numeric += kind & _NUMERIC != 0
            counters += kind & _COUNTER != 0
            short += kind & _SHORT != 0
            words += lines.words[line]
            removed += lines.words[line] if kind & _REMOVED else 0
        num_lines = max(last - first, 1)
        counts[text, 0] = longest
        counts[text, 1] = num_long
        row = ratios[text]
        row[0] = chars / num_lines
        row[1] = more / num_lines
        row[2] = upper / num_lines
        row[3] = numeric / num_lines
        row[4] = counters / num_lines
        row[5] = short / num_lines
        row[6] = removed / max(words, 1)
