"""Signal group `gopher`: quality and repetition of MassiveText (Rae et al. 2021, table A1).

Units are those of filters/text.py: a Chinese page has as many words as Han characters, not one.
One pass over the characters serves lines and paragraphs, one over the words all that counts words.
Every measure is defined for every text: ratios to words divide by at least 1, shares of nothing are
0, nothing is ever NaN. Only `num_stop_words` is null, in languages that have no list below.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from filters.columns import Signal
from filters.repetition import (
    DUP_SIZES,
    TOP_SIZES,
    Keys,
    Positions,
    duplicate_shares,
    ngram_shares,
)
from filters.segments import Texts
from filters.text import (
    CLASSES,
    HASH_PRIME,
    HASH_START,
    SPACE,
    Bits,
    Bytes,
    next_char,
    split_words,
    word_hash,
)
from kernels.compile import kernel

# At the start of a line. Gopher has • and -; the rest is what Chinese pages use (MAP-NEO filter.py)
# and Markdown's asterisk. No em dash: Chinese dialogue and attributions start with one.
BULLETS = "•‣⁃∙·●○■□▪▫◆◇►▶➢※*-–"

# Words of which a text in the language has some. en: table A1. zh: the 22 of FineWeb2 cmn_Hani
# without its "·"; a simplified and a traditional form are one word here, where FineWeb2 has two.
STOP_WORDS: dict[str, tuple[str, ...]] = {
    "en": ("the", "be", "to", "of", "and", "that", "have", "with"),
    "zh": (
        *("的", "年", "在", "月", "是", "和", "日", "了", "于於", "为為", "有", "被", "人", "中"),
        *("他", "与與", "后後", "也", "而", "由"),
    ),
}

GOPHER = "Rae et al. 2021, arXiv:2112.11446, table A1"
RATIO = pa.float32()

COLUMNS: dict[str, Signal] = {
    "num_words": Signal(pa.int32(), "words", "words of the text", GOPHER),
    "num_stop_words": Signal(
        pa.int32(), "words", "distinct STOP_WORDS of its language; null without a list", GOPHER
    ),
    "mean_word_length": Signal(RATIO, "characters", "characters of words / words", GOPHER),
    "hash_ratio": Signal(RATIO, "characters per word", "# and ＃ / words", GOPHER),
    "ellipsis_ratio": Signal(
        RATIO, "runs per word", "runs of … or of at least three . or 。 / words", GOPHER
    ),
    "bullet_line_share": Signal(RATIO, "lines", "lines that start with one of BULLETS", GOPHER),
    "ellipsis_line_share": Signal(RATIO, "lines", "lines that end in …, ... or 。。。", GOPHER),
    "alpha_word_share": Signal(RATIO, "words", "words with a letter; Han and kana are", GOPHER),
    "dup_line_share": Signal(RATIO, "lines", "lines that stood before", GOPHER),
    "dup_line_char_share": Signal(RATIO, "characters of lines", "under such lines", GOPHER),
    "dup_paragraph_share": Signal(RATIO, "paragraphs", "paragraphs that stood before", GOPHER),
    "dup_paragraph_char_share": Signal(
        RATIO, "characters of paragraphs", "under such paragraphs", GOPHER
    ),
    **{
        f"top_{n}_gram_char_share": Signal(
            RATIO, "characters of words", f"under the most frequent {n} words in a row", GOPHER
        )
        for n in TOP_SIZES
    },
    **{
        f"dup_{n}_gram_char_share": Signal(
            RATIO, "characters of words", f"under {n} words in a row that stood before", GOPHER
        )
        for n in DUP_SIZES
    },
}

RATIOS = tuple(name for name, signal in COLUMNS.items() if signal.type == RATIO)

_STOP_SLOTS = 4096
_BULLET_CODES = np.array([ord(char) for char in BULLETS])


def _stop_table() -> tuple[Keys, npt.NDArray[np.uint8]]:
    """Per language and hash modulo 4096: the hash of the stop word there, and its number."""
    hashes = np.zeros((len(STOP_WORDS), _STOP_SLOTS), np.uint64)
    numbers = np.zeros((len(STOP_WORDS), _STOP_SLOTS), np.uint8)
    for language, entries in enumerate(STOP_WORDS.values()):
        for number, entry in enumerate(entries):
            for word in [entry] if entry.isascii() else list(entry):
                value = word_hash(word)
                slot = language, value % _STOP_SLOTS
                assert hashes[slot] == 0, f"stop words collide at {word!r}; change _STOP_SLOTS"
                hashes[slot], numbers[slot] = value, number
    return hashes, numbers


_STOP_HASHES, _STOP_NUMBERS = _stop_table()


def measure(texts: Texts, languages: pa.Array) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    listed = pc.index_in(languages, value_set=pa.array(list(STOP_WORDS)))
    lists = pc.fill_null(listed, -1).to_numpy(zero_copy_only=False).astype(np.int32)
    counts = np.zeros((len(texts), 2), np.int32)
    ratios = np.zeros((len(texts), len(RATIOS)), np.float32)
    _measure(texts.data, texts.offsets, lists, CLASSES, _STOP_HASHES, _STOP_NUMBERS, counts, ratios)
    return {
        "num_words": counts[:, 0].copy(),
        "num_stop_words": pa.array(counts[:, 1], mask=lists < 0),
        **{name: ratios[:, i].copy() for i, name in enumerate(RATIOS)},
    }


@kernel
def _measure(
    data: Bytes,
    offsets: npt.NDArray[np.int64],
    lists: Positions,
    classes: Bits,
    stop_hashes: Keys,
    stop_numbers: npt.NDArray[np.uint8],
    counts: Positions,
    ratios: npt.NDArray[np.float32],
) -> None:
    for text in range(len(offsets) - 1):
        begin, end = offsets[text], offsets[text + 1]
        hashes, lengths, num_letter_words = split_words(data, begin, end, classes)
        num_words = len(hashes)
        counts[text, 0] = num_words
        if lists[text] >= 0:
            seen = 0
            for i in range(num_words):
                slot = int(hashes[i] % np.uint64(_STOP_SLOTS))
                if stop_hashes[lists[text], slot] == hashes[i]:
                    seen |= 1 << int(stop_numbers[lists[text], slot])
            while seen:
                counts[text, 1] += 1
                seen &= seen - 1

        line_hashes, line_chars, paragraph_hashes, paragraph_chars, found = scan_lines(
            data, begin, end, classes
        )
        row = ratios[text]
        row[0] = lengths.sum() / max(num_words, 1)
        row[1] = found[0] / max(num_words, 1)
        row[2] = found[1] / max(num_words, 1)
        row[3] = found[2] / max(len(line_hashes), 1)
        row[4] = found[3] / max(len(line_hashes), 1)
        row[5] = num_letter_words / max(num_words, 1)
        row[6], row[7] = duplicate_shares(line_hashes, line_chars)
        row[8], row[9] = duplicate_shares(paragraph_hashes, paragraph_chars)
        ngram_shares(hashes, lengths, row[10:])


@kernel
def scan_lines(
    data: Bytes, begin: int, end: int, classes: Bits
) -> tuple[Keys, Positions, Keys, Positions, tuple[int, int, int, int]]:
    """Lines and paragraphs of `data[begin:end]`: hash and characters of each; then the number of
    hash marks, ellipses, lines that start with a bullet and lines that end in an ellipsis.

    Two hashes run along, of the line and of the paragraph; each is noted at every character that is
    not a space, so what is noted last is the hash of the stripped piece.
    """
    bound = (end - begin) // 2 + 1
    line_hashes, paragraph_hashes = np.empty(bound, np.uint64), np.empty(bound, np.uint64)
    line_chars, paragraph_chars = np.empty(bound, np.int32), np.empty(bound, np.int32)
    num_lines = num_paragraphs = 0
    hash_marks = ellipses = bullets = ellipsis_ends = 0
    line_hash = paragraph_hash = HASH_START
    line_length = paragraph_length = 0  # with spaces not yet followed by text
    open_line = open_paragraph = ends_in_ellipsis = False
    previous = 0
    repeats = 0
    at = begin
    while at < end:
        code, at = next_char(data, at)
        if code == 10:
            if not open_line:
                open_paragraph = False
            ellipsis_ends += open_line and ends_in_ellipsis
            open_line = False
        repeats = repeats + 1 if code == previous else 1
        previous = code
        if open_paragraph:
            paragraph_hash = (paragraph_hash ^ np.uint64(code)) * HASH_PRIME
            paragraph_length += 1
        if open_line:
            line_hash = (line_hash ^ np.uint64(code)) * HASH_PRIME
            line_length += 1
        if classes[code] & SPACE:
            continue
        if not open_paragraph:
            open_paragraph = True
            num_paragraphs += 1
            paragraph_hash = (HASH_START ^ np.uint64(code)) * HASH_PRIME
            paragraph_length = 1
        if not open_line:
            open_line = True
            num_lines += 1
            line_hash = (HASH_START ^ np.uint64(code)) * HASH_PRIME
            line_length = 1
            for bullet in _BULLET_CODES:
                bullets += code == bullet
        paragraph_hashes[num_paragraphs - 1] = paragraph_hash
        paragraph_chars[num_paragraphs - 1] = paragraph_length
        line_hashes[num_lines - 1] = line_hash
        line_chars[num_lines - 1] = line_length
        hash_marks += code == 0x23 or code == 0xFF03
        ends_in_ellipsis = code == 0x2026 or (repeats >= 3 and (code == 0x2E or code == 0x3002))
        ellipses += ends_in_ellipsis and repeats == (1 if code == 0x2026 else 3)
    ellipsis_ends += open_line and ends_in_ellipsis
    return (
        line_hashes[:num_lines],
        line_chars[:num_lines],
        paragraph_hashes[:num_paragraphs],
        paragraph_chars[:num_paragraphs],
        (hash_marks, ellipses, bullets, ellipsis_ends),
    )
