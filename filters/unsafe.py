"""Signal group `unsafe`: how much a text speaks like pornography, gambling, violence, hate, fraud.

By phrases of words/unsafe.tsv, in Chinese and English; a text is none of it because it names it
once. Of a category

    score = density / (density + HALF) x (1 if several entries were found; of one, SINGLE_SEVERE if
            it is severe, else SINGLE)
    density = 1,000 x hits / words, of which a text has at least FEWEST_WORDS

so in a message of 50 words one hit has .54 if it is severe, else .39; in an article of 1,000 words
ten different ones have .56, two .2. A word is one of filters/text.py: each Han character is one.

The strength of an entry says what it is worth. `severe` has no harmless sense that a short message
would have. `alone` has one, or is mild: one of it never reaches .5. `together` is an everyday word,
or one of biology, sport, finance, music, history, or stands in clean text (benchmarks/word_lists.py
has the rate); it is a hit only within NEAR bytes of one of its category that is `severe` or
`alone`. `ordinary` is never part of a hit.

Insults without a listed word are not found: see docs/unsafe.md.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters import disguises
from filters.columns import Signal
from filters.evidence import distinct, listed
from filters.matching import Matches
from filters.segments import Texts
from filters.shipped import CATEGORIES, SEVERE, TOGETHER, shipped, unsafe_entries

LDNOOBW = "LDNOOBW"  # origin, with a language: the list of bad words that C4 has
HALF = 8.0  # hits in 1,000 words
SINGLE_SEVERE = 0.75
SINGLE = 0.55  # four in 50 words reach .5
FEWEST_WORDS = 50
NEAR = 200  # bytes: 66 Han characters, or 35 words

SCORE, COUNT = pa.float32(), pa.int32()
COLUMNS: dict[str, Signal] = {
    **{
        name: Signal(
            SCORE, "phrases per word", f"0..1: density and variety of phrases of {name}", "assay"
        )
        for name in CATEGORIES
    },
    "score": Signal(SCORE, "phrases per word", "the largest of these", "assay"),
    "words": Signal(
        pa.list_(pa.string()), "phrases", "category:phrase, at most 8, most frequent first", "assay"
    ),
    "num_pornography": Signal(COUNT, "phrases", "hits of pornography", "assay"),
    "num_bad_words": Signal(
        COUNT, "phrases", "of the list LDNOOBW, of any strength", "datatrove C4BadWordsFilter"
    ),
}


class Entries(NamedTuple):
    names: list[str]  # category:phrase
    categories: npt.NDArray[np.int64]  # number in CATEGORIES
    severe: npt.NDArray[np.bool_]
    together: npt.NDArray[np.bool_]
    bad_words: npt.NDArray[np.bool_]  # on the list LDNOOBW, or holds a word of it


@functools.cache
def entries() -> Entries:
    known = unsafe_entries()
    bad_words = {
        disguises.name(entry.phrase) for entry in known if entry.origin.startswith(LDNOOBW)
    }
    return Entries(
        [f"{entry.category}:{disguises.name(entry.phrase)}" for entry in known],
        np.array([CATEGORIES.index(entry.category) for entry in known]),
        np.array([entry.strength == SEVERE for entry in known]),
        np.array([entry.strength == TOGETHER for entry in known]),
        np.array([bool(bad_words.intersection(_parts(entry.phrase))) for entry in known]),
    )


def _parts(entry: str) -> set[str]:
    """The phrases that stand in an entry: its words in a row, its Han characters."""
    phrase = disguises.name(entry)
    pieces, space = (phrase.split(), " ") if phrase.isascii() else (list(phrase), "")
    ends = range(1, len(pieces) + 1)
    return {space.join(pieces[first:end]) for end in ends for first in range(end)}


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    known = entries()
    num_texts, num_categories = len(texts), len(CATEGORIES)
    found = shipped(texts).unsafe
    hits = _hits(found, known)
    texts_of, entries_of = found.texts[hits], found.entries[hits]

    def per_category(of: npt.NDArray[np.int64], which: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        cells = of * num_categories + known.categories[which]
        times = np.bincount(cells, minlength=num_texts * num_categories)
        return times.reshape(num_texts, num_categories)

    different = distinct(texts_of, entries_of, len(known.names))
    words = np.maximum(np.diff(texts.segments.words.offsets), FEWEST_WORDS)
    counts = per_category(texts_of, entries_of)
    density = 1000 * counts / words[:, None]
    scores = density / (density + HALF)
    severe = known.severe[entries_of]
    single = np.where(per_category(texts_of[severe], entries_of[severe]), SINGLE_SEVERE, SINGLE)
    several = per_category(*different) > 1
    scores = np.where(several, scores, single * scores).astype(np.float32)
    return {
        **{name: scores[:, i].copy() for i, name in enumerate(CATEGORIES)},
        "score": scores.max(axis=1, initial=0),
        "words": listed(*different, known.names, num_texts),
        "num_pornography": counts[:, CATEGORIES.index("pornography")].astype(np.int32),
        "num_bad_words": np.bincount(
            found.texts[known.bad_words[found.entries]], minlength=num_texts
        ).astype(np.int32),
    }


def _hits(found: Matches, known: Entries) -> npt.NDArray[np.bool_]:
    """Which of the matches count."""
    together = known.together[found.entries]
    hits = ~together
    categories = known.categories[found.entries]
    for category in range(len(CATEGORIES)):
        weak = np.flatnonzero(together & (categories == category))
        strong = np.flatnonzero(~together & (categories == category))
        if not (len(weak) and len(strong)):
            continue
        after = np.searchsorted(strong, weak)
        for neighbour in (strong[np.maximum(after - 1, 0)], strong[after % len(strong)]):
            same = found.texts[neighbour] == found.texts[weak]
            near = np.abs(found.begins[neighbour] - found.begins[weak]) <= NEAR
            hits[weak] |= same & near
    return hits
