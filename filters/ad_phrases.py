"""The phrases of words/ads.tsv in a batch: found once, read by the groups `ads` and `copied`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.automaton import Automaton, plain
from filters.matching import find
from filters.segments import Texts

PATH = Path(__file__).with_name("words") / "ads.tsv"
KINDS = ("contact", "price", "offer", "boast", "call", "trade", "praise", "gambling", "mirror")


def entries() -> list[tuple[str, float, str]]:
    """(kind, weight of one occurrence, phrase), as in the file."""
    rows = [
        line.split("\t") for line in PATH.read_text(encoding="utf-8").splitlines() if line[0] != "#"
    ]
    return [
        (kind, float(weight), phrase)
        for kind, weight, listed in rows
        for phrase in listed.split(" | ")
    ]


ENTRIES = entries()
WEIGHTS = np.array([weight for _, weight, _ in ENTRIES])
_KIND = np.array([KINDS.index(kind) for kind, _, _ in ENTRIES])


class Found(NamedTuple):
    """A row for each text and entry in it, by text and then by where it stands first."""

    texts: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]  # numbers in KINDS
    times: npt.NDArray[np.int64]  # that the entry stands in the text
    begins: npt.NDArray[np.int64]  # of the first time: bytes of the batch
    ends: npt.NDArray[np.int64]


@functools.cache
def _automaton() -> Automaton:
    return plain([phrase for _, _, phrase in ENTRIES])


@functools.lru_cache(maxsize=1)
def phrases(texts: Texts) -> Found:
    """All of them in a batch; of the batch before nothing is kept but this."""
    matches = find(texts, _automaton())
    keys = matches.texts * len(ENTRIES) + matches.entries
    _, firsts, times = np.unique(keys, return_index=True, return_counts=True)
    order = np.argsort(firsts)
    firsts = firsts[order]
    entry = matches.entries[firsts]
    return Found(
        matches.texts[firsts],
        entry,
        _KIND[entry],
        times[order],
        matches.begins[firsts],
        matches.ends[firsts],
    )
