"""Signal group `generated`: how much a page in Chinese or English reads as if a machine wrote it.

`score` is the probability of a small logistic model over what can be counted: stock phrases by kind
(filters/words/generated.tsv), rows of one to three words that machines write more often
(filters/style_grams.py), evenness of paragraphs and sentences (filters/page_shape.py), and how
plain the words are. No language model reads the text, so a carefully edited page passes and a
formal writer may not: docs/generated.md says how many, by genre. A short text tells little: below
SOME_WORDS its score falls with its length, and below MIN_DIFFERENT phrases, however often they
stand, it stays below .5. What a chat leaves behind (`As an AI language model`, 作为一个AI) is
near-certain, and gives at least LEFTOVER.

The coefficients are made by benchmarks/fit_generated.py, which says on which text. At .5 one of two
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
from filters.evidence import MOST
from filters.page_shape import SHAPE, page_shapes
from filters.segments import Texts
from filters.stock_phrases import KINDS, LANGUAGES, NUM_TELLING, ROWS, count_stock, entries
from filters.style_grams import entries as style_entries
from filters.style_grams import trie, weigh_style

LEFTOVER = 0.97
THRESHOLD = 0.5  # from which `evidence` is given
SOME_WORDS = 50  # also added to the words of a text, so that one phrase in a short one is no rate
MIN_DIFFERENT = 3  # stock phrases and rows of words

# Weight of each of FEATURES, and of 1 at the end; made by benchmarks/fit_generated.py.
COEFFICIENTS: dict[str, tuple[float, ...]] = {
    "en": (
        *(1.19, -0.412, 0.03465, 0.2409, 1.164, 0.03478, -0.4363),
        *(3.684, -2.628, -0.1684, -0.3269, 3.594, -0.3007, -25.17),
        *(1, 1.074),
    ),
    "zh": (
        *(2.46, 0.3067, 0.1812, 0.4026, 1.33, 0.009844, -0.3817),
        *(-1.247, -2.07, 0.2368, -0.4575, -3.16, -1.372, -5.019),
        *(1, 2.422),
    ),
}
FEATURES = (
    *KINDS[1:],  # square root of phrases of the kind in a hundred words
    *("bold_share", "evenness", "burstiness"),
    "sentence_length",  # log of words in a sentence
    *("letter_words", "word_length", "non_words"),  # share, characters, share of characters
    "style",  # weights of words/style.tsv in a hundred words
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
        _STRINGS, "phrases", "stock phrases, then words of style.tsv, where score ≥ .5", "assay"
    ),
}

Matrix = npt.NDArray[np.float64]


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    listed = pc.index_in(columns["lang"], value_set=pa.array(LANGUAGES))
    languages = pc.fill_null(listed, -1).to_numpy(zero_copy_only=False).astype(np.int32)
    counts, shown = count_stock(texts.segments.words, languages)
    style, rows = weigh_style(texts.segments.words, languages, trie())
    shapes = page_shapes(texts.data, texts.segments)
    table = features(texts, counts, shapes, style)
    weights = np.array([COEFFICIENTS[name] for name in LANGUAGES])[languages]
    sums = (table * weights[:, :-1]).sum(axis=1) + weights[:, -1]
    num_words = np.diff(texts.segments.words.offsets)
    num_stock = counts[:, :NUM_TELLING].sum(axis=1)
    score = np.minimum(num_words / SOME_WORDS, 1) / (1 + np.exp(-sums.clip(-30, 30)))
    num_different = (shown >= 0).sum(axis=1) + (rows >= 0).sum(axis=1)
    score = np.where(num_different < MIN_DIFFERENT, score.clip(0, 0.49), score)
    score = np.where(counts[:, 0] > 0, score.clip(LEFTOVER, 1), score).astype(np.float32)
    return {
        "score": pa.array(score, mask=languages < 0),
        "num_leftovers": counts[:, 0].copy(),
        "stock_ratio": (num_stock / np.maximum(num_words, 1)).astype(np.float32),
        "evenness": shapes[:, SHAPE.index("evenness")].copy(),
        "burstiness": shapes[:, SHAPE.index("burstiness")].copy(),
        "evidence": _evidence(shown, rows, (languages >= 0) & (score >= THRESHOLD)),
    }


def features(
    texts: Texts, counts: npt.NDArray[Any], shapes: npt.NDArray[Any], style: npt.NDArray[Any]
) -> Matrix:
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
        100 * style / (num_words + SOME_WORDS),
    ]
    return np.array(columns, np.float64).T.clip(-100, 100)


def _evidence(
    shown: npt.NDArray[np.int32], rows: npt.NDArray[np.int32], flagged: npt.NDArray[np.bool_]
) -> pa.ListArray:
    """Of the texts that are flagged the stock phrases shown, then the rows of words."""
    stock = np.array([phrase for _, _, phrase in entries()], object)
    style = np.array([phrase for _, phrase, _ in style_entries()], object)
    found = [
        dict.fromkeys([*stock[ROWS[line[line >= 0], 3]], *style[row[row >= 0]]])
        for line, row in zip(shown[flagged], rows[flagged], strict=True)
    ]
    lengths = np.zeros(len(flagged), np.int64)
    lengths[flagged] = [min(len(phrases), MOST) for phrases in found]
    offsets = np.append(0, lengths.cumsum()).astype(np.int32)
    listed = [phrase for phrases in found for phrase in list(phrases)[:MOST]]
    return pa.ListArray.from_arrays(offsets, pa.array(listed, pa.string()))
