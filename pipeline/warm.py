"""Importing this loads what a worker would load with its first part: models, tables, kernels, and
the tokenizer.

For the fork server of workers.py: loaded before it forks, these pages and seconds are shared.
"""

from __future__ import annotations

import gc
import json
import os

import pyarrow as pa

from dedup import bands, minhash
from dedup.shingles import shingles
from filters.segments import Texts
from filters.signals import GROUPS
from pipeline import heap, workers
from pipeline.readers import jsonl_rows
from pipeline.settings import Input, Near, Tokenizer
from pipeline.stages import encoder
from pipeline.tokenizer_engines import loaded

TEXTS = pa.array(["The mill stood by the river, and the road went past it.", "河边有一座磨坊。"])
LANGUAGES = pa.array(["en", "zh"])

heap.settle()
for group in GROUPS.values():
    group.measure(Texts(TEXTS), LANGUAGES)
jsonl_rows.rows_of(0, b'{"text":"a"}\n', Input(source="warm", files=""))
near = Near()
hashes, offsets = shingles(TEXTS, near.ngram)
bands.band_keys(minhash.signatures(hashes, offsets, near.permutations), near.bands, near.rows)
if told := os.environ.get(workers.TOKENIZER):
    settings, engine = json.loads(told)
    loaded(engine, encoder(Tokenizer(**settings), engine).json)
gc.collect()
heap.give_back()
gc.freeze()  # a collection in a worker would write to the shared pages, and so copy them
