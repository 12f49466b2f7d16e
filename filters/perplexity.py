"""Signal group `perplexity`: how expected a text is to a language model of its language.

A text that a model of good text expects is head, what surprises it is tail: CCNet (Wenzek et al.
2020) kept the head and the middle of each language. A list of names, a poem and mojibake are all
surprising; the bucket is a place among others and no judgement. The models are those of
filters/ngrams.py, made by `assay perplexity train`, or KenLM's (filters/kenlm_model.py).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters import cards, edges, kenlm_model, ngrams
from filters.columns import Signal
from filters.fasttext_file import Floats
from filters.kenlm_model import Kenlm
from filters.names import Offsets
from filters.ngrams import Positions
from filters.segments import Texts
from filters.spread import FOLDS, Codes, View
from filters.text import CLASSES
from kernels.arrow import string_buffers

KIND = "perplexity"  # of card
CCNET = "Wenzek et al. 2020, CCNet (arXiv:1911.00359)"
BUCKETS = ("head", "middle", "tail")
BUCKET_EDGES = (
    0.3,
    0.6,
)  # cc_net mine.py, PerplexityBucket: percentile_head 30, percentile_tail 60
COLUMNS: dict[str, Signal] = {
    "bits": Signal(
        pa.float32(),
        "characters",
        "- log2 p / characters, the text's end among them; null where its language has no model",
        "Chen and Goodman 1999, interpolated Kneser-Ney",
    ),
    "percentile": Signal(
        pa.float32(),
        "text",
        "share of the texts of the edges, of this language, that take at most as many bits",
        "filters/edges.py",
    ),
    "bucket": Signal(
        pa.string(), "text", "head below percentile .3, tail above .6, between them middle", CCNET
    ),
}


class Models(NamedTuple):
    languages: Mapping[str, ngrams.Model | Kenlm]
    max_chars: int
    edges: Mapping[str, list[float]]


def measure(
    path: str, texts: Texts, columns: Mapping[str, pa.Array]
) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch, by the models at `path`; see filters/signals.py."""
    models = load(path)
    languages = np.array(columns["lang"].to_pylist(), dtype=object)
    found = bits(models, texts, languages)
    undefined = np.isnan(found)
    places = np.zeros(len(found), np.float32)
    places[~undefined] = edges.percentiles(found[~undefined], languages[~undefined], models.edges)
    buckets = np.searchsorted(BUCKET_EDGES, places, "right")
    return {
        "bits": pa.array(found, mask=undefined),
        "percentile": pa.array(places, mask=undefined),
        "bucket": pa.array(BUCKETS).take(pa.array(buckets, mask=undefined)),
    }


def bits(models: Models, texts: Texts, languages: npt.NDArray[np.object_]) -> Floats:
    """Bits a character; NaN where the language has no model."""
    found = np.full(len(texts), np.nan, np.float32)
    for language, model in models.languages.items():
        rows = np.flatnonzero(languages == language)
        if len(rows):
            data, offsets = string_buffers(texts.array.take(pa.array(rows)))
            codes, ends = ngrams.characters(data, offsets, FOLDS, CLASSES, models.max_chars)
            found[rows] = _costs(model, texts, rows, codes, ends) / (np.diff(ends) - 1)
    return found


def _costs(
    model: ngrams.Model | Kenlm, texts: Texts, rows: Positions, codes: Codes, ends: Offsets
) -> npt.NDArray[np.floating]:
    """Bits of each of some texts, whose characters are `codes`."""
    if isinstance(model, Kenlm):
        return kenlm_model.costs(model, texts.array.take(pa.array(rows)).to_pylist())
    return ngrams.score(model.table, model.order, model.unknown, codes, ends) / ngrams.UNIT


def load(path: str | Path) -> Models:
    """The models of a file and its card, read once a process while they are the same files.

    Raises:
        ValueError: it is no such file, or its card is missing, damaged or of another one.
    """
    return _load(Path(path), cards.state(Path(path)))


@functools.lru_cache(maxsize=2)
def _load(path: Path, state: tuple[int, ...]) -> Models:
    del state  # part of the cache's key

    def made(card: dict[str, Any]) -> Models:
        with np.load(path) as tables:
            languages = {
                name: _kenlm(path, of_it, card["max_chars"])
                if "kenlm" in of_it
                else ngrams.Model(card["order"], tables[name], of_it["unknown"])
                for name, of_it in card["languages"].items()
            }
        return Models(languages, card["max_chars"], card["edges"]["bits"])

    return cards.read_model(path, KIND, made)


def _kenlm(path: Path, described: dict[str, Any], max_chars: int) -> Kenlm:
    """A model that the card names, relative to its own folder."""
    file = path.parent / described["kenlm"]
    model = kenlm_model.load(file, View(described["units"], described["fold"], max_chars))
    if cards.sha256(file) != described["sha256"]:
        raise ValueError(
            f"{file} is not the model that {cards.card_path(path)} describes; put it back, or "
            "take it in again with `assay perplexity adopt`"
        )
    return model
