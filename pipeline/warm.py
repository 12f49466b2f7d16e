"""Importing this loads what a worker would load with its first part: models, tables, kernels.

For the fork server of workers.py: loaded before it forks, these pages and seconds are shared.
"""

from __future__ import annotations

import gc

import pyarrow as pa

from dedup import bands, minhash
from dedup.shingles import shingles
from filters.segments import Texts
from filters.signals import GROUPS
from pipeline.settings import Near

TEXTS = pa.array(["The mill stood by the river, and the road went past it.", "河边有一座磨坊。"])
LANGUAGES = pa.array(["en", "zh"])

for group in GROUPS.values():
    group.measure(Texts(TEXTS), LANGUAGES)
near = Near()
hashes, offsets = shingles(TEXTS, near.ngram)
bands.band_keys(minhash.signatures(hashes, offsets, near.permutations), near.bands, near.rows)
gc.collect()
gc.freeze()  # a collection in a worker would write to the shared pages, and so copy them
