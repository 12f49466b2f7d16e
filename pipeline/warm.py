"""Importing this loads what a worker would load with its first part: models, tables, kernels, and
the tokenizer.

For the fork server of workers.py: loaded before it forks, these pages and seconds are shared. What
is not compiled yet is compiled first, in a process that ends with it: numba keeps 100 MB and more
of what it compiled, and each worker would compile what only workers call.
"""

from __future__ import annotations

import gc
import json
import os

import numpy as np
import pyarrow as pa

from dedup import (
    bands,
    clusters,
    contamination,
    item_index,
    minhash,
    overlap,
    postings,
    repeats,
    sketches,
    winnowing,
)
from dedup.piece_hashes import hash_pieces, of_site
from dedup.placed_words import Length
from dedup.shingles import shingles
from filters.segments import Texts
from filters.signals import GROUPS
from kernels.cache import kept
from pipeline import forks, heap, workers
from pipeline.dedup_settings import Near
from pipeline.groups import DEFAULT
from pipeline.literals import count_literals
from pipeline.readers import jsonl_rows
from pipeline.sentencepiece_engine import loaded
from pipeline.settings import Input, Tokenizer
from pipeline.stage_tables.documents import encoder

TEXTS = pa.array(["The mill stood by the river, and the road went past it.", "河边有一座磨坊。"])
WANTED = json.loads(os.environ.get(workers.WANTED, "{}"))
SIGNALS = WANTED.get("signals", DEFAULT)
GROUPS_WANTED = [GROUPS[name] for name in SIGNALS if name in GROUPS]  # not those with own models
LANGUAGES, NOTHING = pa.array(["en", "zh"]), pa.array(["", ""])


def call_kernels() -> str:
    """Each that a worker calls, on next to nothing; returns a word for `forks.apart`."""
    for group in GROUPS_WANTED:
        group.measure(Texts(TEXTS), {"lang": LANGUAGES, **dict.fromkeys(group.reads, NOTHING)})
    jsonl_rows.rows_of(0, b'{"text":"a"}\n{"text":"b"}\n', Input(source="warm", files=""))
    count_literals(TEXTS, ("<s>",))
    near = Near()
    hashes, offsets = shingles(TEXTS, near.ngram)
    signatures = minhash.signatures(hashes, offsets, near.permutations)
    keys, docs = bands.key_records(
        bands.band_keys(signatures, near.bands, near.rows), offsets[1:] > offsets[:-1], part=0
    )
    index = postings.build_index(*shingles(TEXTS, near.ngram), near.threshold)
    contamination.matches(index, hashes, offsets, near.threshold, near.threshold)
    if "contamination" in SIGNALS:
        items = item_index.build_index(TEXTS, TEXTS, Length(3, 3))
        overlap.find(items, Texts(TEXTS).data, Texts(TEXTS).offsets)
    if "across" in SIGNALS:
        lines = Texts(TEXTS).segments.lines
        folded = hash_pieces(Texts(TEXTS).data, lines.begins[:2], lines.ends[:2])
        of_site(folded.hashes, folded.hashes)
    if "substrings" in SIGNALS:
        data, offsets, row = Texts(TEXTS).data, Texts(TEXTS).offsets, np.zeros(1, np.int64)
        winnowing.winnowed(data, offsets, 8, 5)
        repeats.around(data, offsets, (row, row), (row, row), 8, 5)
        repeats.rounded(data, offsets, row, row, row + 8, 1)
    bits = sketches.sketches(signatures)[docs.astype("i8")]
    edges = clusters.spanning_forest(sketches.similar_edges(keys, docs, bits, most=0))
    clusters.streamed_components(lambda: [edges])
    clusters.verified_pairs(np.asarray(pa.array(hashes)), offsets, near.threshold)
    clusters.united(np.zeros(1, np.int32), np.zeros(1, np.int32), 1)
    return "compiled"


heap.settle()
kept(*workers.compiled(SIGNALS), lambda: forks.apart(call_kernels)().encode())
call_kernels()
if "tokenizer" in WANTED:
    engine = WANTED["engine"]
    loaded(engine, encoder(Tokenizer(**WANTED["tokenizer"]), engine).json)
gc.collect()
heap.give_back()
gc.freeze()  # a collection in a worker would write to the shared pages, and so copy them
