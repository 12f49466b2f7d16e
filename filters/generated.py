"""Signal group `generated`: how much a page in Chinese or English reads as if a machine wrote it.

`score` is the probability of a small logistic model over what can be counted: stock phrases by kind
(filters/words/generated.tsv), evenness of paragraphs and sentences (filters/page_shape.py), and how
plain the words are. No language model reads the text, so a carefully edited page passes and a
formal writer may not: docs/filters.md says how many, by genre. A short text tells little: below
SOME_WORDS its score falls with its length, and with one stock phrase, however often, or none it
stays below .5.
What a chat leaves behind (`As an AI language model`, 作为一个AI) is near-certain, and gives at
least LEFTOVER.

The coefficients are made by benchmarks/fit_generated.py, which says on which text. At .5 one of a
hundred pieces of its human text is flagged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from filters.columns import Signal
from filters.page_shape import SHAPE, page_shapes
from filters.segments import Texts
from filters.stock_phrases import KINDS, LANGUAGES, NUM_TELLING, ROWS, count_stock, entries

LEFTOVER = 0.97
THRESHOLD = 0.5  # from which `evidence` is given
SOME_WORDS = 50  # also added to the words of a text, so that one phrase in a short one is no rate
MIN_STOCK = 2  # different ones

# Weight of each of FEATURES, and of 1 at the end; made by benchmarks/fit_generated.py.
COEFFICIENTS: dict[str, tuple[float, ...]] = {
    "en": (
        *(2.791, 0.1591, 1.506, 1.193, 2.551, -0.8366, -0.1733),
        *(5.925, -2.684, -0.3995, 0.5382, 2.489, 0.1914, -38.51),
        0.4368,
    ),
    "zh": (
        *(4.757, 1.355, 0.632, 1.042, 3.224, 0.6506, -1.266),
        *(-1.814, -2.576, 0.916, -1.006, 13.09, -1.9, -6.783),
        -10.48,
    ),
}
FEATURES = (
    *KINDS[1:],  # square root of phrases of the kind in a hundred words
    *("bold_share", "evenness", "burstiness"),
    "sentence_length",  # log of words in a sentence
    *("letter_words", "word_length", "non_words"),  # share, characters, share of characters
)

FLOAT = pa.float32()
_STRINGS = pa.list_(pa.string())
COLUMNS: dict[str, Signal] = {
    "score": Signal(FLOAT, "text", "logistic model of FEATURES; null if not en or zh", "assay"),
    "num_leftovers": Signal(
        pa.int32(), "phrases", "what a chat leaves behind: as an AI language model", "assay"
    ),
    "stock_ratio": Signal(
        FLOAT, "phrases per word", "stock phrases of generated.tsv / words", "assay"
    ),
    "evenness": Signal(
        FLOAT, "lines", "variation of the length of prose lines; .5 of under three", "assay"
    ),
    "burstiness": Signal(
        FLOAT, "sentences", "variation of words in a sentence by prose line; .5 likewise", "assay"
    ),
    "evidence": Signal(
        _STRINGS, "phrases", "the first different stock phrases, where score ≥ .5", "assay"
    ),
}

Matrix = npt.NDArray[np.float64]


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    listed = pc.index_in(columns["lang"], value_set=pa.array(LANGUAGES))
    languages = pc.fill_null(listed, -1).to_numpy(zero_copy_only=False).astype(np.int32)
    counts, shown = count_stock(texts.segments.words, languages)
    shapes = page_shapes(texts.data, texts.segments)
    table = features(texts, counts, shapes)
    weights = np.array([COEFFICIENTS[name] for name in LANGUAGES])[languages]
    sums = (table * weights[:, :-1]).sum(axis=1) + weights[:, -1]
    num_words = np.diff(texts.segments.words.offsets)
    num_stock = counts[:, :NUM_TELLING].sum(axis=1)
    score = np.minimum(num_words / SOME_WORDS, 1) / (1 + np.exp(-sums.clip(-30, 30)))
    num_different = (shown >= 0).sum(axis=1)
    score = np.where(num_different < MIN_STOCK, score.clip(0, 0.49), score)
    score = np.where(counts[:, 0] > 0, score.clip(LEFTOVER, 1), score).astype(np.float32)
    return {
        "score": pa.array(score, mask=languages < 0),
        "num_leftovers": counts[:, 0].copy(),
        "stock_ratio": (num_stock / np.maximum(num_words, 1)).astype(np.float32),
        "evenness": shapes[:, SHAPE.index("evenness")].copy(),
        "burstiness": shapes[:, SHAPE.index("burstiness")].copy(),
        "evidence": _evidence(shown, (languages >= 0) & (score >= THRESHOLD)),
    }


def features(texts: Texts, counts: npt.NDArray[Any], shapes: npt.NDArray[Any]) -> Matrix:
    """A row a text, a column for each of FEATURES, from what the kernels counted."""
    words, lines, *_, found = texts.segments
    num_words = np.diff(words.offsets)
    at_least_one = np.maximum(num_words, 1)
    word_chars = np.where(num_words > 0, words.ends[words.offsets[1:] - 1], 0)
    num_chars, num_sentences = (
        np.diff(np.append(0, part[: lines.offsets[-1]].cumsum(dtype=np.int64))[lines.offsets])
        for part in (lines.chars, lines.sentences)
    )
    columns = [
        *np.sqrt(100 * counts[:, 1:].T / (num_words + SOME_WORDS)),
        *(shapes[:, SHAPE.index(name)] for name in ("bold_share", "evenness", "burstiness")),
        np.log1p(num_words / np.maximum(num_sentences, 1)),
        found.letter_words / at_least_one,
        word_chars / at_least_one,
        (num_chars - word_chars) / np.maximum(num_chars, 1),
    ]
    return np.array(columns, np.float64).T.clip(-10, 10)


def _evidence(shown: npt.NDArray[np.int32], flagged: npt.NDArray[np.bool_]) -> pa.Array:
    """The phrases shown, of the texts that are flagged."""
    kept = (shown >= 0) & flagged[:, None]
    offsets = np.append(0, kept.sum(axis=1).cumsum()).astype(np.int32)
    phrases = np.array([phrase for _, _, phrase in entries()])
    return pa.ListArray.from_arrays(offsets, pa.array(phrases[ROWS[shown[kept], 3]], pa.string()))
