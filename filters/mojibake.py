"""Characters that stand in a text because its bytes were read in a wrong encoding.

Three signs, each told by the codecs themselves, none by a list of words:

    replaced    U+FFFD: a byte that was none in the encoding tried
    sequences   characters of Windows-1252 whose bytes are one character in UTF-8 (Ã©, â€™), and the
                beginnings that UTF-8 has under other codecs (鈥, вЂ, ‚Ä, ΓÇ); 锟斤拷, 烫烫, 屯屯
    strangers   runs of characters that text seldom has: Han that neither GB 2312 nor Big5 nor JIS
                has among its common ones, and Latin letters with accents in a row

A stranger is proof only in company: classical poems have 2 or 3 of a hundred. So the characters are
weighed, as in CUSUM (Page 1954): the log of how much likelier each is in mojibake than in text is
summed up, never below 0; where the sum passes THRESHOLD, all since it was 0 is wrong, up to the
last stranger. Each weight is in tenths of a nat, from the shares that stand beside it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from filters import confused_han, pinyin
from filters.text import next_char
from kernels.cache import kept_arrays
from kernels.compile import inner_kernel, kernel
from kernels.hashing import Bytes, load8

# Share in mojibake against share in text: strangers .6 / .03, other Han .4 / .97.
STRANGER, COMMON = 30, -9
LATIN = 12  # U+00A1 to 00FF; GBK read as Latin-1 is nothing else, Bora and Yoruba have many
FOREIGN = -5  # kana, Greek and Cyrillic, which Big5 read as GBK yields now and then
THRESHOLD = 120  # e**12: ten such Latin characters in a row, or four other strangers
CEILING = THRESHOLD + 60
SPANS = 8  # places that are kept as evidence

# What a character asks for, beside its weight.
REPLACED, LEAD, PAIR, ALONE, LOOK = 1, 2, 4, 8, 16
_ASKS, _SHIFT = 31, 5
_REPLACEMENT = "\ufffd"
# Of UTF-8, as cp1252: two bytes (Â, Ã: Latin-1), three (â to ï), four (ð). ß« and Ä» end words.
_LEADS = {**dict.fromkeys("ÂÃ", 1), **dict.fromkeys(map(chr, range(0xE2, 0xF0)), 2), "ð": 3}
# Codec -> what text in UTF-8 begins with when it is read so: typographic marks, accented letters.
_OTHERS = ("mac-roman", "cp437", "cp850", "cp1250", "cp1251")
_MARKS, _ACCENTED = "’“”–—…", "éèàáíóúñçöäüß"
_FIRST_OF_GBK = "’".encode().decode("gb18030", "replace")[0]  # 鈥, as in 鈥檚


# First looks for filters/broken.py, on the way: brackets behind a character that is not ASCII which
# hold an accent (TONE for each) or end as pinyin may (1); ×; characters that recognition puts in
# another's place; letters between spaces.
BRACKETS, POWERS, CONFUSIONS, APART = range(4)
TONE = pinyin.MIN_DIFFERENT
_BRACKET, _TIMES = "（", "×"


def _pairs() -> frozenset[str]:
    read = {
        char.encode().decode(codec, "replace")[:2]
        for codec in _OTHERS
        for char in _MARKS + _ACCENTED
    }
    kept = {pair for pair in read if not any(c.isascii() or c == _REPLACEMENT for c in pair)}
    return frozenset(kept | {"锟斤", "斤拷", "烫烫", "屯屯"})


PAIRS = _pairs()


def _is_common(char: str) -> bool:
    """Among the common characters of GB 2312 (3,755), Big5 (5,401) or JIS X 0208 (2,965)."""
    levels = (("gb2312", 0xB0, 0xD7), ("big5", 0xA4, 0xC6), ("euc_jp", 0xB0, 0xCF))
    for codec, first, last in levels:
        data = char.encode(codec, "ignore")
        if len(data) == 2 and first <= data[0] <= last:
            return True
    return False


def _tables() -> tuple[npt.NDArray[np.int16], npt.NDArray[np.uint8]]:
    """Of each character below U+10000: its weight, shifted, and what it asks for; of those below
    U+2200: whether cp1252 or Latin-1 has it for a byte that goes on in UTF-8 (80 to BF).
    """
    weights = np.full(0x10000, COMMON, np.int16)
    for code in range(0x4E00, 0x9FA6):
        if not _is_common(chr(code)):
            weights[code] = STRANGER
    weights[0xA1:0x100] = LATIN
    weights[[0xB7, 0xD7]] = COMMON  # · and × stand between Han
    for first, last in ((0x370, 0x52F), (0x3040, 0x30FF), (0xFF61, 0xFF9F)):
        weights[first : last + 1] = FOREIGN
    weights[0xE000:0xF900] = 0  # private use: icons, and characters of fonts
    weights[ord(_REPLACEMENT)] = 0
    weights <<= _SHIFT
    weights[ord(_REPLACEMENT)] |= REPLACED
    weights[list(map(ord, _LEADS))] |= LEAD
    weights[[ord(pair[0]) for pair in sorted(PAIRS)]] |= PAIR
    weights[ord(_FIRST_OF_GBK)] |= ALONE
    weights[[ord(_BRACKET), ord(_TIMES), *map(ord, confused_han.CONFUSED)]] |= LOOK
    goes_on = np.zeros(0x2200, np.uint8)
    goes_on[0x80:0xC0] = 1
    goes_on[[ord(char) for char in bytes(range(0x80, 0xC0)).decode("cp1252", "ignore")]] = 1
    return weights, goes_on


MARKS, GOES_ON = kept_arrays([__file__, confused_han.__file__], _tables)
_PAIRED = np.array(
    sorted(ord(pair[0]) << 16 | ord(pair[1]) for pair in PAIRS | confused_han.PAIRS), np.int64
)
_NUM_LEADS = np.array([_LEADS.get(chr(code), 0) for code in range(0x100)])
_BRACKET_CODE, _TIMES_CODE = ord(_BRACKET), ord(_TIMES)
_ENDS_SYLLABLE = np.zeros(256, np.bool_)
_ENDS_SYLLABLE[[ord(letter) for letter in "aeiouvngr' "]] = True
_HIGH = np.uint64(0x8080808080808080)
_ODD, _EVEN = np.uint64(0xFF00FF00FF00FF00), np.uint64(0x00FF00FF00FF00FF)
_ODD_SPACES, _EVEN_SPACES = _ODD // 255 * 0x20, _EVEN // 255 * 0x20
_ODD_LETTERS, _EVEN_LETTERS = _ODD // 255 * 0x40, _EVEN // 255 * 0x40


@kernel
def wrong_chars(
    data: Bytes, offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Of each text: replaced characters, those of sequences, strangers: int32[n, 3]; first looks
    int32[n, 4]; begin and end of the first SPANS places, in bytes of `data`, zeros behind the last:
    int64[n, SPANS, 2]. Strangers and sequences may be the same characters.
    """
    num_texts = len(offsets) - 1
    counts = np.zeros((num_texts, 3), np.int32)
    looks = np.zeros((num_texts, 4), np.int32)
    spans = np.zeros((num_texts, SPANS, 2), np.int64)
    for text in range(num_texts):
        at, end = offsets[text], offsets[text + 1]
        total = pending = num_spans = 0
        first = sequence_end = at  # of what is summed up; of the last sequence
        run = -1  # the span of what is summed up
        code = 0
        while at < end:
            begin = at
            if data[at] < 0x80:
                while at + 8 <= end:
                    chunk = load8(data, at, end)
                    if chunk & _HIGH:
                        break
                    odd = chunk & _ODD == _ODD_SPACES and chunk & _EVEN_LETTERS == _EVEN_LETTERS
                    even = chunk & _EVEN == _EVEN_SPACES and chunk & _ODD_LETTERS == _ODD_LETTERS
                    looks[text, APART] += odd or even
                    at += 8
                while at < end and data[at] < 0x80:
                    at += 1
                if begin > offsets[text] and begin + 1 < end and data[begin - 1] >= 0x80:
                    if data[begin] == 0x28:  # (
                        looks[text, BRACKETS] += _bracketed(data, begin + 1, end)
                    elif data[begin] == 0x20 and at == begin + 1 and at + 3 < end:
                        looks[text, APART] += data[at] >= 0xE4 and data[at + 3] == 0x20
                total = max(total + COMMON * (at - begin), 0)
                continue
            if total == 0:
                at = _after_common(data, at, end)
                if at > begin:
                    continue
                first, pending, run = begin, 0, -1
            before = code
            code, at = next_char(data, at)
            mark = MARKS[code] if code < 0x10000 else 0
            num_chars, stop = 0, at
            if mark & REPLACED:
                num_chars = 1
                counts[text, 0] += 1
            elif mark & LOOK:
                if code == _BRACKET_CODE:
                    looks[text, BRACKETS] += _bracketed(data, at, end)
                elif code == _TIMES_CODE:
                    looks[text, POWERS] += 1
                else:
                    looks[text, CONFUSIONS] += _is_pair(data, at, end, code)
                    if begin >= offsets[text] + 3 and data[begin - 3] >= 0xE0:
                        looks[text, CONFUSIONS] += _is_pair(
                            data, begin, end, next_char(data, begin - 3)[0]
                        )
            elif mark & _ASKS and begin >= sequence_end:
                num_chars, stop = _sequence(data, at, end, code, mark)
                counts[text, 1] += num_chars
                sequence_end = stop
            weight = mark >> _SHIFT if code != before else min(mark >> _SHIFT, 0)  # 哒哒哒哒
            total = max(total + weight, 0)
            pending += mark & REPLACED == 0
            if total >= THRESHOLD and weight >= LATIN:
                total = min(total, CEILING)
                counts[text, 2] += pending
                pending = 0
                if run >= 0:
                    spans[text, run, 1] = at
                elif num_spans < SPANS:
                    run = num_spans
                    begin, num_chars = first, 1
            if num_chars and num_spans < SPANS:
                spans[text, num_spans, 0] = begin
                spans[text, num_spans, 1] = stop
                num_spans += 1
    return counts, looks, spans


@kernel
def _bracketed(data: Bytes, at: int, end: int) -> int:
    """TONE where a letter with an accent (āáǎà ...) stands before the bracket that closes this one;
    1 where a letter does that a syllable may end in."""
    for i in range(at, min(at + 40, end)):
        if data[i] >= 0xC3 and data[i] < 0xE0:
            return TONE
        if data[i] == 0x29 or data[i] == 0x0A or data[i] >= 0xE0:
            return int(i > at and _ENDS_SYLLABLE[data[i - 1]])
    return 0


@inner_kernel
def _after_common(data: Bytes, at: int, end: int) -> np.int64:
    """Behind the common characters of three bytes at `at`: most of Chinese."""
    here, stop = np.uint64(at), np.uint64(end)
    while here < stop and data[here] >= 0xE0:
        lead = np.uint64(data[here])
        if lead >= 0xF0:
            break
        code = (lead & np.uint64(15)) << np.uint64(12)
        code |= np.uint64(data[here + np.uint64(1)] & 63) << np.uint64(6)
        code |= np.uint64(data[here + np.uint64(2)] & 63)
        if MARKS[code] != COMMON << _SHIFT:
            break
        here += np.uint64(3)
    return np.int64(here)


@kernel
def _sequence(data: Bytes, at: int, end: int, code: int, mark: int) -> tuple[int, int]:
    """Characters and end of the sequence that `code`, which ends at `at`, begins; 0 if none."""
    if mark & ALONE:
        return 1, at
    if mark & LEAD:
        rest = _NUM_LEADS[code]
        stop = at
        for _ in range(rest):
            after, stop = next_char(data, stop) if stop < end else (0, end)
            if after >= len(GOES_ON) or not GOES_ON[after]:
                break
        else:
            return rest + 1, stop
    if mark & PAIR and _is_pair(data, at, end, code):
        return 2, next_char(data, at)[1]
    return 0, at


@kernel
def _is_pair(data: Bytes, at: int, end: int, code: int) -> bool:
    """Is `code` with the character at `at` one of the pairs?"""
    if at == end:
        return False
    pair = code << 16 | next_char(data, at)[0]
    found = np.searchsorted(_PAIRED, pair)
    return bool(found < len(_PAIRED) and _PAIRED[found] == pair)
