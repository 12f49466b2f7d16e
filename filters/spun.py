"""Signal group `spun`: Chinese pages whose words were swapped for others of their meaning (伪原创).

Of several words for a thing people take the usual one; a program that rewrites a page so that it
looks new draws any of them. With the weights of filters/synonyms.py, summed over the n different
words of a text that have others of their meaning,

    choice = (sum + SOME_WORDS * USUAL_CHOICE) / (n + SOME_WORDS)
    score  = 1 / (1 + exp(-STEEPNESS * (choice - CUT)))

so a short text is taken for a usual one. Where under LEAST_SHARE of the Han stand in such words the
text is no modern prose (poems, old books, names in a list), and the score is 0. What it finds, and
what not: docs/advertising.md.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from filters.columns import Signal
from filters.segments import Texts
from filters.synonyms import synonyms, weigh_choices, weights

# Of human pieces of 1.2 KB, each source counting the same: `python benchmarks/spinning.py`.
USUAL_CHOICE = -0.65  # the median
CUT = -0.2  # passed by .6 %
SOME_WORDS = 20
STEEPNESS = 10.0
LEAST_SHARE = 0.3  # a hundredth of modern prose has less, and 99 of 100 poems
THRESHOLD = 0.5  # from which `evidence` is given

_STRINGS = pa.list_(pa.string())
COLUMNS: dict[str, Signal] = {
    "score": Signal(
        pa.float32(), "text", "how far its choice of words is a machine's; null if not zh", "assay"
    ),
    "choice": Signal(
        pa.float32(),
        "words",
        "mean weight of different words with others of their meaning",
        "assay",
    ),
    "num_words": Signal(pa.int32(), "words", "different ones that have others of it", "assay"),
    "evidence": Signal(_STRINGS, "words", "the least usual ones, where score ≥ .5", "assay"),
}


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    is_chinese = pc.equal(columns["lang"], "zh").to_numpy(zero_copy_only=False).astype(np.bool_)
    sums, counts, rows = weigh_choices(texts.data, texts.offsets, is_chinese, synonyms())
    num_words, num_chars, num_han = counts.T.astype(np.float64)
    choice = (sums + SOME_WORDS * USUAL_CHOICE) / (num_words + SOME_WORDS)
    score = 1 / (1 + np.exp(-STEEPNESS * (choice - CUT)))
    score[num_chars < LEAST_SHARE * num_han] = 0
    score[num_han == 0] = 0
    return {
        "score": pa.array(score.astype(np.float32), mask=~is_chinese),
        "choice": pa.array(choice.astype(np.float32), mask=~is_chinese),
        "num_words": pa.array(counts[:, 0], mask=~is_chinese),
        "evidence": _evidence(rows, score >= THRESHOLD),
    }


def _evidence(rows: npt.NDArray[np.int32], flagged: npt.NDArray[np.bool_]) -> pa.Array:
    found = rows[flagged]
    lengths = np.zeros(len(rows), np.int32)
    lengths[flagged] = (found >= 0).sum(axis=1)
    offsets = np.append(0, lengths.cumsum()).astype(np.int32)
    words = _words().take(pa.array(found[found >= 0]))
    return pa.ListArray.from_arrays(offsets, words)


@functools.cache
def _words() -> pa.Array:
    return pa.array(weights(), pa.string())
