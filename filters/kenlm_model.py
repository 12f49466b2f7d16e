"""KenLM's models (Heafield 2011) for the signal group `perplexity`: ARPA or its binary form.

An extra: the package is LGPL-2.1 and compiles when it is installed. It holds the GIL. What such a
model was trained on decides what it must be asked with: characters apart, jieba's words, or the
text as it stands (filters/spread.py). SentencePiece, which CCNet's own models want, is not at hand.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from filters.fasttext_file import Floats
from filters.spread import View, spread

BITS = math.log2(10)  # of its log10


class Kenlm(NamedTuple):
    model: Any
    view: View


def load(path: Path, view: View) -> Kenlm:
    """The model of a file.

    Raises:
        ValueError: the package is not installed, or it cannot read the file.
    """
    try:
        import kenlm
    except ImportError:
        raise ValueError(f"{path}: needs KenLM; pip install 'assay[kenlm]'") from None
    if not path.is_file():
        raise ValueError(f"{path}: no such file; a KenLM model (.arpa or binary) is expected there")
    try:
        quiet = kenlm.Config()
        quiet.show_progress = False
        quiet.arpa_complain = kenlm.ARPALoadComplain.NONE
        return Kenlm(kenlm.Model(str(path), quiet), view)
    except OSError as error:
        reason = str(error).splitlines()[-1]
        raise ValueError(f"{path} is no model that KenLM reads: {reason}") from None


def costs(model: Kenlm, texts: list[str]) -> Floats:
    """Bits of each whole text, its end among them."""
    lines = [spread(text, model.view) for text in texts]
    found = [-BITS * model.model.score(line.strip()) for line in lines]
    return np.array(found, np.float32)
