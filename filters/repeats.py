"""Signal group `repeats`: how many n-grams of a text stand in it more than once.

data-juicer and ChineseWebText count *occurrences*: of n words in a row that stand twice both count,
where `gopher.dup_*` counts the characters under those that stood before. So a text that is written
twice has 1 here and about .5 there, and a bound of one does not hold for the other.

BLOOM's measure of ten characters in a row looks at the most frequent ones only, as many as the root
of the number of distinct ones, so it falls slowly as a text grows. Here its ten characters are the
fewest words in a row that have ten: in Chinese that is ten Han characters, punctuation left out; in
English it is two or three words, a place in five. ChineseWebText's 13-grams of characters are 13
words; its code misses the last of a text.

All is counted where `gopher` counts: filters/repetition.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from filters.columns import Signal
from filters.segments import Texts

RATIO = pa.float32()
_JUICER = "data-juicer word_repetition_filter.py"
COLUMNS: dict[str, Signal] = {
    "char_10_gram_share": Signal(
        RATIO,
        "words",
        "fewest words in a row that have 10 characters: the most frequent, root of the distinct",
        "BLOOM; data-juicer character_repetition_filter.py",
    ),
    "word_5_gram_share": Signal(RATIO, "words", "5 words in a row that stand twice", _JUICER),
    "word_10_gram_share": Signal(RATIO, "words", "10 words in a row that stand twice", _JUICER),
    "word_13_gram_share": Signal(
        RATIO, "words", "13 words in a row that stand twice", "ChineseWebText preprocess.py"
    ),
}


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; no other columns are read. See filters/signals.py."""
    places = texts.repetition.places
    return {name: places[:, i].copy() for i, name in enumerate(COLUMNS)}
