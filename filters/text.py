"""Units of text, defined once: characters, words, lines, paragraphs, sentences.

Every signal names the unit that it counts, and a unit means the same in all of them:

    character   a code point
    letter      a character of a script (str.isalpha; Han, kana and Hangul are letters)
    word        each Han character and each kana is a word; in other scripts a maximal run of
                letters, digits and marks, with apostrophes inside. Punctuation, symbols and emoji
                are never words. "他用Python3写don't。" has 5: 他 用 Python3 写 don't
    line        what stands between line feeds, stripped; lines without text are not counted
    paragraph   a maximal run of lines with text, stripped
    sentence    what ends in 。！？…；!? or in a full stop before white space, with the closing
                quotes and brackets after it, or at a paragraph's end; it holds at least one word

The plain functions are the definition. The kernels read the same from UTF-8 and are equal to it on
every text (tests/filters/test_text.py). Thai, Lao, Khmer and Burmese write no spaces either: a run
of theirs is one word, and no preset judges them. Real words of Chinese: filters/segmenters.py.
Examples by language: docs/filters.md.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import numpy.typing as npt

from kernels.cache import kept_arrays
from kernels.compile import kernel
from kernels.hashing import NOT_ASCII, Bytes, load8

# Bits of a code point; a Latin letter has WORD, LETTER and LATIN.
WORD = 1  # letter or digit (str.isalnum)
LETTER = 2  # str.isalpha
MARK = 4  # combining mark, joiner or soft hyphen: belongs to the word before it
SINGLE = 8  # a word by itself: Han or kana
APOSTROPHE = 16
SPACE = 32  # str.isspace
HAN = 64
KANA = 128
HANGUL = 256
LATIN = 512

# Blocks of Unicode 17 that hold letters of a script, unassigned code points included.
_SCRIPTS = {
    WORD | LETTER | SINGLE | HAN: (
        *((0x2E80, 0x2FD5), (0x3005, 0x3005), (0x3007, 0x3007), (0x3021, 0x3029)),
        *((0x3038, 0x303B), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF)),
        *((0x20000, 0x2FA1F), (0x30000, 0x3347F)),
    ),
    WORD | LETTER | SINGLE | KANA: (
        *((0x3041, 0x3096), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF)),
        *((0x31F0, 0x31FF), (0xFF66, 0xFF9D), (0x1AFF0, 0x1B16F)),
    ),
    HANGUL: (
        *((0x1100, 0x11FF), (0x3131, 0x318E), (0xA960, 0xA97C), (0xAC00, 0xD7A3)),
        *((0xD7B0, 0xD7FB), (0xFFA0, 0xFFDC)),
    ),
    LATIN: (
        *((0x41, 0x5A), (0x61, 0x7A), (0xAA, 0xAA), (0xBA, 0xBA), (0xC0, 0xD6), (0xD8, 0xF6)),
        *((0xF8, 0x2B8), (0x1D00, 0x1D25), (0x1D2C, 0x1D5C), (0x1E00, 0x1EFF), (0x2C60, 0x2C7F)),
        *((0xA722, 0xA787), (0xA78B, 0xA7FF), (0xAB30, 0xAB64), (0xFB00, 0xFB06)),
        *((0xFF21, 0xFF3A), (0xFF41, 0xFF5A)),
    ),
}

Bits = npt.NDArray[np.uint16]


def _chars() -> npt.NDArray[np.str_]:
    """Every code point as a string of one character; surrogates are "" (they are none)."""
    codes = np.arange(0x110000, dtype=np.uint32)
    codes[0xD800:0xE000] = 0
    return codes.view("<U1")


CHARS = _chars()


def _classes() -> tuple[Bits]:
    """Class bits of each of the 0x110000 code points; takes 50 ms, 3 from the cache."""
    bits = np.zeros(0x110000, np.uint16)
    bits[np.strings.isalnum(CHARS)] |= WORD
    bits[np.strings.isalpha(CHARS)] |= WORD | LETTER
    bits[np.strings.isspace(CHARS)] |= SPACE
    for script, ranges in _SCRIPTS.items():
        for first, last in ranges:
            bits[first : last + 1] |= script
    marks = [
        code
        for code in np.flatnonzero(bits[:0x20000] == 0).tolist()
        if unicodedata.category(chr(code))[0] == "M"
    ]
    bits[marks] = MARK
    bits[0xE0100:0xE01F0] = MARK  # variation selectors of ideographs
    bits[[0xAD, 0x200C, 0x200D]] = MARK
    bits[[ord("'"), ord("’")]] = APOSTROPHE
    return (bits,)


(CLASSES,) = kept_arrays([__file__], _classes)


def words(text: str) -> list[str]:
    """The words of a text, in order."""
    found: list[str] = []
    run = False  # the last character was part of a word that can go on
    inside = False  # ... or of any word, so that a mark joins it
    apostrophe = ""  # seen after a run; part of the word only if the run goes on
    for char in text:
        bits = int(CLASSES[ord(char)])
        if bits & SINGLE:
            found.append(char)
            run, inside, apostrophe = False, True, ""
        elif bits & WORD:
            if run:
                found[-1] += apostrophe + char
            else:
                found.append(char)
            run, inside, apostrophe = True, True, ""
        elif bits & MARK and inside:
            found[-1] += char
        elif bits & APOSTROPHE and run and inside:
            apostrophe, inside = char, False
        else:
            run, inside, apostrophe = False, False, ""
    return found


def lines(text: str) -> list[str]:
    """Stripped lines that hold text."""
    return [line.strip() for line in text.split("\n") if line.strip()]


def paragraphs(text: str) -> list[str]:
    """Runs of lines with text, stripped outside, unchanged inside."""
    runs = [""]
    for line in text.split("\n"):
        if line.strip():
            runs[-1] += line + "\n"
        elif runs[-1]:
            runs.append("")
    return [run.strip() for run in runs if run]


_SENTENCE_END = re.compile(r"""(?:[。！？…；!?]|\.(?=[\s.…”’"')\]]|$))+[”』」’"')）】》\]]*""")


def sentences(text: str) -> list[str]:
    """Sentences that hold a word, stripped."""
    found = []
    for paragraph in paragraphs(text):
        start = 0
        for end in [match.end() for match in _SENTENCE_END.finditer(paragraph)] + [len(paragraph)]:
            found.append(paragraph[start:end].strip())
            start = end
    return [sentence for sentence in found if words(sentence)]


@kernel
def next_char(data: Bytes, at: int) -> tuple[int, int]:
    """Code point at byte `at` of valid UTF-8, and the byte after it."""
    here = np.uint64(at)  # no negative index: see kernels/hashing.py
    lead = data[here]
    if lead < 0x80:
        return int(lead), at + 1
    second = data[here + np.uint64(1)] & 0x3F
    if lead < 0xE0:
        return int((lead & 0x1F) << 6 | second), at + 2
    code = int(lead & 0x0F) << 12 | second << 6 | (data[here + np.uint64(2)] & 0x3F)
    if lead < 0xF0:
        return code, at + 3
    return (code & 0x7FFF) << 6 | (data[here + np.uint64(3)] & 0x3F), at + 4


@kernel
def count_classes(
    data: Bytes, offsets: npt.NDArray[np.int64], classes: Bytes, num_classes: int
) -> npt.NDArray[np.int64]:
    """Per text and class, how many of its characters `classes` puts there: int64[n, num_classes].

    One number a code point, not one a bit: a text then costs its length and not also 2**bits.
    """
    counts = np.zeros((len(offsets) - 1, num_classes), np.int64)
    # Neighbours are mostly of one class, and its count would wait for itself: four of each.
    rows = np.zeros((4, num_classes), np.int64)
    for text in range(len(offsets) - 1):
        at, end = offsets[text], offsets[text + 1]
        while at < end:
            if at + 8 <= end and load8(data, at, end) & NOT_ASCII == 0:
                for i in range(8):
                    rows[i & 3, classes[np.uint64(data[np.uint64(at) + np.uint64(i)])]] += 1
                at += 8
            else:
                code, after = next_char(data, at)
                rows[at & 3, classes[np.uint64(code)]] += 1
                at = after
        for number in range(num_classes):
            for row in range(4):
                counts[text, number] += rows[row, number]
                rows[row, number] = 0
    return counts
