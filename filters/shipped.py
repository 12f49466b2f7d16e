"""The phrases of words/ads.tsv and words/unsafe.tsv in a batch.

One look at each character serves both lists, and so the groups `ads`, `copied` and `unsafe`: alone
each took 4 to 6 CPU-ms a MB, together they take 6. Each list has categories of its own, and
ordinary phrases are those of unsafe.tsv, so what is found of a list is what it would find alone.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np

from filters import disguises
from filters.automaton import FILES as PHRASE_FILES
from filters.automaton import Automaton, Form, automaton
from filters.matching import Matches, find_all, without_ordinary
from filters.segments import Texts

ADS, UNSAFE = (Path(__file__).with_name("words") / name for name in ("ads.tsv", "unsafe.tsv"))
AD_FILES = (str(ADS), str(disguises.FILE), *PHRASE_FILES)
UNSAFE_FILES = (str(UNSAFE), str(disguises.FILE), *PHRASE_FILES)
CATEGORIES = ("pornography", "gambling", "violence", "hate", "fraud")  # of unsafe.tsv
SEVERE, ALONE, TOGETHER, ORDINARY = STRENGTHS = ("severe", "alone", "together", "ordinary")


class Ad(NamedTuple):
    kind: str
    weight: float  # of one occurrence
    phrase: str


class Unsafe(NamedTuple):
    phrase: str
    category: str
    strength: str
    origin: str


class Shipped(NamedTuple):
    ads: Matches  # entries are numbers in `ad_entries()`
    unsafe: Matches  # ... in `unsafe_entries()`


@functools.cache
def ad_entries() -> list[Ad]:
    rows = [line.split("\t") for line in _lines(ADS) if line[0] != "#"]
    return [
        Ad(kind, float(weight), phrase)
        for kind, weight, listed in rows
        for phrase in listed.split(" | ")
    ]


@functools.cache
def unsafe_entries() -> list[Unsafe]:
    """Those that count."""
    return [entry for entry in _unsafe() if entry.strength != ORDINARY]


def _unsafe() -> list[Unsafe]:
    return [Unsafe(*line.split("\t")) for line in _lines(UNSAFE)]


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@functools.cache
def _automaton() -> Automaton:
    num_ads = len(ad_entries())
    unsafe = disguises.forms([entry.phrase for entry in unsafe_entries()])
    return automaton(
        [*ad_forms(), *(form._replace(entry=form.entry + num_ads) for form in unsafe)],
        [0] * num_ads + [1 + CATEGORIES.index(entry.category) for entry in unsafe_entries()],
        [entry.phrase for entry in _unsafe() if entry.strength == ORDINARY],
    )


def ad_forms() -> list[Form]:
    """Each entry and its disguises, but for those that are entries with a weight of their own."""
    phrases = [entry.phrase for entry in ad_entries()]
    listed = set(phrases)
    forms = disguises.forms(phrases)
    return [form for form in forms if form.text == phrases[form.entry] or form.text not in listed]


@functools.lru_cache(maxsize=1)
def shipped(texts: Texts) -> Shipped:
    """All of them in a batch; of the batch before nothing is kept but this."""
    found = find_all(texts.data, texts.offsets, _automaton())
    num_ads = len(ad_entries())
    is_ad = (found[1] >= 0) & (found[1] < num_ads)  # ordinary ones are -1
    unsafe = without_ordinary(np.compress(~is_ad, found, axis=1))
    unsafe[1] -= num_ads
    return Shipped(Matches(*np.compress(is_ad, found, axis=1)), Matches(*unsafe))
