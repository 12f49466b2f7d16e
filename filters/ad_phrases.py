"""The phrases of words/ads.tsv in a batch: found once, read by the groups `ads` and `copied`."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.segments import Texts
from filters.shipped import ad_entries, shipped

KINDS = ("contact", "price", "offer", "boast", "call", "trade", "praise", "gambling", "mirror")

ENTRIES = ad_entries()
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


@functools.lru_cache(maxsize=1)
def phrases(texts: Texts) -> Found:
    """All of them in a batch; of the batch before nothing is kept but this."""
    matches = shipped(texts).ads
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
