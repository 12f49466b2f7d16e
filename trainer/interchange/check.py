"""Is a model of transformers the same one here?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tokenizers

from pipeline.config import ConfigError
from trainer.interchange.llama import read_config
from trainer.interchange.proof import Proof, prove, their_model
from trainer.interchange.weights import left_over, load_into
from trainer.model import Decoder
from trainer.shapes import Shape

NUM_TEXTS, NUM_TOKENS = 16, 512  # that are compared


def check(folder: Path, shape: Shape, texts: Sequence[str]) -> Proof:
    """Compare logits on the beginnings of texts, with the folder's own tokenizer.

    Raises:
        ConfigError: no tokenizer.json, weights missing or left over, no text.
    """
    config = read_config(folder)
    model = Decoder(shape, int(config["vocab_size"]))
    load_into(model, folder)
    if names := left_over(model, folder):
        raise ConfigError(
            f"{folder}: {names[0]} and {len(names) - 1} more weights have no place in the model "
            "here: it computes something else"
        )
    file = folder / "tokenizer.json"
    if not file.exists():
        raise ConfigError(f"{file}: no such file; download it too")
    encode = tokenizers.Tokenizer.from_file(str(file)).encode
    ids = [np.array(encode(text).ids[:NUM_TOKENS]) for text in texts[:NUM_TEXTS]]
    found = [row for row in ids if len(row)]
    if not found:
        raise ConfigError("no held-out text has a token; nothing can be proved")
    return prove(model, their_model(folder), found)
