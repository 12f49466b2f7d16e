"""Signal groups of learned classifiers: `classifiers: {quality: models/quality.bin}`.

A model is a supervised fastText file with two labels and, beside it, its card (quality.json): which
view of a text it reads (filters/spread.py), how its margin becomes a probability
(filters/calibration.py), where the percentiles of a named corpus lie (filters/edges.py), and what
it was trained on and how well it does. `assay classifier train` writes both.

With two labels fastText is linear: softmax over output @ mean(input rows) is the sigmoid of the
mean of one number a row, input @ (output[good] - output[bad]). So that is all that is kept of the
matrices: 1 MB instead of 16 for 2^18 rows, and a lookup a token instead of a row of it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from filters import calibration, cards, edges
from filters.columns import Signal
from filters.fasttext_file import SOFTMAX, Floats, Network, Positions, read
from filters.fasttext_predict import rows_of, scratch_of
from filters.segments import Texts
from filters.spread import View, spread_all
from kernels.compile import kernel
from kernels.hashing import Bytes

KIND = "classifier"  # of card
COLUMNS: dict[str, Signal] = {
    "score": Signal(
        pa.float32(),
        "text",
        "calibrated probability that the text is of the positive class",
        "Joulin et al. 2016, fastText; calibration: filters/calibration.py",
    ),
    "percentile": Signal(
        pa.float32(),
        "text",
        "share of the texts of the edges, of this language, that score at most as much",
        "Su et al. 2024, Nemotron-CC (ranks of several classifiers); filters/edges.py",
    ),
}


class Model(NamedTuple):
    view: View
    network: Network  # without its matrices
    weights: Floats  # of each row
    calibration: dict[str, Any]
    edges: Mapping[str, list[float]]  # language -> percentiles of the margin


def measure(
    path: str, texts: Texts, columns: Mapping[str, pa.Array]
) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch, by the model at `path`; see filters/signals.py."""
    model = load(path)
    found = margins(model, texts)
    languages = np.array(columns["lang"].to_pylist(), dtype=object)
    return {
        "score": calibration.apply(found, model.calibration),
        "percentile": edges.percentiles(found, languages, model.edges),
    }


def margins(model: Model, texts: Texts) -> Floats:
    """Log odds of the positive label, as the model itself gives them."""
    data, offsets = spread_all(texts.data, texts.offsets, model.view)
    found: Floats = _margins(model.network, model.weights, data, offsets[:-1], offsets[1:])
    return found


@kernel
def _margins(
    network: Network, weights: Floats, data: Bytes, begins: Positions, ends: Positions
) -> Floats:
    found = np.zeros(len(begins), np.float32)
    word, rows = scratch_of(network, begins, ends)
    for i in range(len(begins)):
        count = rows_of(network, data, begins[i], ends[i], word, rows)
        total = 0.0
        for k in range(count):
            total += weights[rows[k]]
        found[i] = total / max(count, 1)
    return found


def load(path: str | Path) -> Model:
    """The model of a file and its card, read once a process while they are the same files.

    Raises:
        ValueError: it is no such model, or its card is missing, damaged or of another model.
    """
    return _load(Path(path), cards.state(Path(path)))


@functools.lru_cache(maxsize=8)
def _load(path: Path, state: tuple[int, ...]) -> Model:
    del state  # part of the cache's key

    def made(card: dict[str, Any]) -> Model:
        view, network = View(**card["view"]), linear(path, card["positive"])
        return Model(view, *network, card["calibration"], card["edges"]["margins"])

    return cards.read_model(path, KIND, made)


def linear(path: Path, positive: str) -> tuple[Network, Floats]:
    """A model of two labels as one number a row.

    Raises:
        ValueError: it has other labels, or another loss than softmax.
    """
    labels, network = read(path)
    if positive not in labels or len(labels) != 2 or network.loss != SOFTMAX:
        raise ValueError(
            f"{path}: labels {', '.join(labels[:5])}, loss {network.loss}; a quality model has two "
            f"labels, {positive!r} one of them, and the loss softmax ({SOFTMAX})"
        )
    good = labels.index(positive)
    weights = network.input @ (network.output[good] - network.output[1 - good])
    empty = np.empty((0, 0), np.float32)
    return network._replace(input=empty, output=empty), np.ascontiguousarray(weights)
