"""Signal group `ads`: advertising and search-engine word salad, in Chinese and English.

No word makes an advertisement, and no kind of words does. The phrases of words/ads.tsv are of eight
kinds; with numbers they are the evidence, w of each kind, an entry counted at most MAX_TIMES times.
Per 1,000 Han characters or 3,000 Latin letters (3,000 bytes; a shorter text counts as MIN_SIZE of
them) they are saturated,

    d = 1,000 w / size        s = d / (d + HALF)

and only kinds that come together make the score: over all PAIRS of kinds

    score = 1 - product of (1 - weight s_a s_b)

of which the weight is 1, but FACT_WEIGHT where one of the two is a fact that a timetable states too
(contact, price), and 0 where both are. A text with fewer than MIN_DIFFERENT different phrases and
kinds of numbers, and no stuffing, has at most TOO_FEW, below the recommended .2: it asks a price.
What the numbers were fitted on, and how often they are wrong: docs/advertising.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters.ad_numbers import (
    DISCOUNT,
    PHONE,
    PRICE,
    STUFFED_FROM,
    count_numbers,
    next_number,
    stuffed_share,
    stuffed_words,
)
from filters.ad_phrases import KINDS, WEIGHTS, Found, phrases
from filters.columns import Signal
from filters.evidence import MOST
from filters.segments import Texts

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int32]

MAX_TIMES = 2
MIN_SIZE = 160
MIN_DIFFERENT = 3
TOO_FEW = 0.19
HALF = {
    "contact": 5.0,
    "price": 8.0,
    "offer": 6.5,
    "boast": 6.5,
    "call": 5.5,
    "trade": 8.0,
    "praise": 7.0,
    "gambling": 5.0,
}
FACTS = ("contact", "price")
FACT_WEIGHT = 0.6
# (kind, weight, at most) of one phone, price, discount
NUMBERS = {PHONE: ("contact", 1.5, 3), PRICE: ("price", 0.5, 6), DISCOUNT: ("offer", 1.0, 3)}
STUFFED_ALL = 0.40  # the share from which `stuffing` is 1

PARTS = (*HALF, "stuffing")
PAIRS = {
    (one, other): FACT_WEIGHT if one in FACTS or other in FACTS else 1.0
    for one, other in itertools.combinations(PARTS, 2)
    if (one, other) != FACTS
}

EVIDENCE_FROM = 0.1  # of the score
EVIDENCE_NUMBERS = 20  # of a text that are looked at, each by a call

_WHAT = {
    "contact": "telephone numbers, accounts, invitations to write or call",
    "price": "prices",
    "offer": "discounts, gifts, free trials",
    "boast": "superlatives and promises of advertising law",
    "call": "calls to act",
    "trade": "words of a trade or a shady service",
    "praise": "praise of customers, of paid articles",
    "gambling": "words of gambling sites",
}
COLUMNS: dict[str, Signal] = {
    **{
        kind: Signal(pa.float32(), "phrases per characters", f"s of {what}", "assay")
        for kind, what in _WHAT.items()
    },
    "stuffing": Signal(
        pa.float32(),
        "words",
        "share under the commonest two words in a row, .12 as 0, .4 as 1",
        "assay",
    ),
    "score": Signal(
        pa.float32(), "text", "1 - product over pairs of (1 - weight s_a s_b)", "assay"
    ),
    "evidence": Signal(
        pa.list_(pa.string()),
        "phrases",
        "up to 8 of them, numbers too, where the score is over .1",
        "assay",
    ),
}


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    del columns
    found = phrases(texts)
    numbers = count_numbers(texts.data, texts.offsets)
    parts = _parts(texts, found, numbers)
    scores = score(parts)
    num_phrases = np.bincount(found.texts[found.kinds < len(HALF)], minlength=len(texts))
    few = num_phrases + (numbers > 0).sum(axis=1) < MIN_DIFFERENT
    few &= parts["stuffing"] == 0
    scores = np.where(few, np.minimum(scores, TOO_FEW), scores)
    return {
        **{name: parts[name].astype(np.float32) for name in PARTS},
        "score": scores.astype(np.float32),
        "evidence": _evidence(texts, found, parts, scores),
    }


def score(parts: Mapping[str, Floats]) -> Floats:
    """How much the parts say together."""
    left = np.ones_like(parts[PARTS[0]])
    for (one, other), weight in PAIRS.items():
        left *= 1 - weight * parts[one] * parts[other]
    return 1 - left


def saturated(weights: Floats, size: Floats, half: float) -> Floats:
    """s of the formula above."""
    density = 1000 * weights / np.maximum(size, MIN_SIZE)
    return density / (density + half)


def _parts(texts: Texts, found: Found, numbers: Counts) -> dict[str, Floats]:
    size = np.diff(texts.offsets) / 3
    weights = {kind: np.zeros(len(texts)) for kind in HALF}
    times = np.minimum(found.times, MAX_TIMES) * WEIGHTS[found.entries]
    for number, kind in enumerate(KINDS):
        if kind in weights:
            of_kind = found.kinds == number
            weights[kind] += np.bincount(found.texts[of_kind], times[of_kind], len(texts))
    for number, (kind, weight, most) in NUMBERS.items():
        weights[kind] += weight * np.minimum(numbers[:, number], most)
    stuffed = (stuffed_share(texts.segments.words) - STUFFED_FROM) / (STUFFED_ALL - STUFFED_FROM)
    return {
        **{kind: saturated(weights[kind], size, half) for kind, half in HALF.items()},
        "stuffing": np.clip(stuffed, 0, 1),
    }


def _evidence(texts: Texts, found: Found, parts: Mapping[str, Floats], scores: Floats) -> pa.Array:
    """Of each kind of number the first, the stuffed words, then phrases, of each entry the first;
    as they stand in the text, after their kind."""
    shown = scores > EVIDENCE_FROM
    lists: list[list[str]] = [[] for _ in range(len(texts))]
    for text in np.flatnonzero(shown).tolist():
        lists[text] += _numbers(texts, text)
        if parts["stuffing"][text]:
            lists[text].append(f"stuffing: {stuffed_words(texts.array[text].as_py())}")
    for row in np.flatnonzero(shown[found.texts] & (found.kinds < len(HALF))).tolist():
        words = lists[found.texts[row]]
        if len(words) < MOST:
            span = texts.data[found.begins[row] : found.ends[row]].tobytes().decode()
            words.append(f"{KINDS[found.kinds[row]]}: {span}")
    return pa.array(lists, COLUMNS["evidence"].type)


def _numbers(texts: Texts, text: int) -> list[str]:
    """The first telephone number, price and discount of a text."""
    low, end = texts.offsets[text : text + 2]
    firsts: dict[int, str] = {}
    at = low
    for _ in range(EVIDENCE_NUMBERS):
        number, begin, at = next_number(texts.data, low, at, end)
        if number >= 0:
            firsts.setdefault(number, texts.data[begin:at].tobytes().decode())
    return [f"{NUMBERS[number][0]}: {span}" for number, span in firsts.items()]
