"""Signal group `gopher`: quality and repetition of MassiveText (Rae et al. 2021, table A1).

Units are those of filters/text.py: a Chinese page has as many words as Han characters, not one.
Every measure is defined for every text: ratios to words divide by at least 1, shares of nothing are
0, nothing is ever NaN. Only `num_stop_words` is null, in languages that have no list below.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from filters.columns import Signal
from filters.endings import ends_in_ellipsis
from filters.names import longest, table_for
from filters.ngram_sizes import DUP_SIZES, TOP_SIZES
from filters.pieces import Segments
from filters.repetition import Shares, duplicate_shares
from filters.segments import Texts
from filters.stop_words import lists_of, num_stop_words
from filters.text import next_char
from kernels.compile import kernel
from kernels.hashing import Bytes

# At the start of a line. Gopher has • and -; the rest is what Chinese pages use (MAP-NEO filter.py)
# and Markdown's asterisk. No em dash: Chinese dialogue and attributions start with one.
BULLETS = "•‣⁃∙·●○■□▪▫◆◇►▶➢※*-–"

# Language -> the list of STOP_WORDS that its texts are held to.
STOP_LISTS = {"en": "en", "zh": "zh"}

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

_BULLET_CODES = np.array([ord(char) for char in BULLETS])


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    lists = lists_of(columns["lang"], STOP_LISTS)
    ngrams = texts.repetition.chars  # the last columns
    ratios = np.zeros((len(texts), len(RATIOS)), np.float32)
    ratios[:, -ngrams.shape[1] :] = ngrams
    words = texts.segments.words
    _measure(texts.data, texts.segments, ratios)
    return {
        "num_words": np.diff(words.offsets).astype(np.int32),
        "num_stop_words": pa.array(num_stop_words(words, lists), mask=lists < 0),
        **{name: ratios[:, i].copy() for i, name in enumerate(RATIOS)},
    }


@kernel
def _measure(data: Bytes, segments: Segments, ratios: Shares) -> None:
    words, lines, paragraphs, found = segments
    most = longest(lines.offsets)
    keys, table = np.empty(most, np.uint64), table_for(most)
    for text in range(len(ratios)):
        begin, end = words.offsets[text], words.offsets[text + 1]
        num_words = max(end - begin, 1)
        first, last = lines.offsets[text], lines.offsets[text + 1]
        bullets = ellipsis_ends = 0
        for line in range(first, last):
            code, _ = next_char(data, lines.begins[line])
            for bullet in _BULLET_CODES:
                bullets += code == bullet
            ellipsis_ends += ends_in_ellipsis(data, lines.begins[line], lines.ends[line])
        row = ratios[text]
        row[0] = words.ends[end - 1] / num_words if end > begin else 0.0
        row[1] = found.hash_marks[text] / num_words
        row[2] = found.ellipses[text] / num_words
        row[3] = bullets / max(last - first, 1)
        row[4] = ellipsis_ends / max(last - first, 1)
        row[5] = found.letter_words[text] / num_words
        row[6], row[7] = duplicate_shares(lines.hashes, lines.chars, first, last, keys, table)
        row[8], row[9] = duplicate_shares(
            paragraphs.hashes,
            paragraphs.chars,
            paragraphs.offsets[text],
            paragraphs.offsets[text + 1],
            keys,
            table,
        )
