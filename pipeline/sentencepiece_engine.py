"""SentencePiece models by the library `sentencepiece` itself, which is what their ids are.

Converted ones differ in how a long run of spaces is cut (BPE), and where two ways to cut a word are
equally likely up to rounding (Unigram, whose sums have 32 bits). So the model stands in the
tokenizer.json that it became, at the decoder, where `tokenizers` skips keys it does not know.

Apart from tokenizer_engines.py, on which the tokens of every corpus depend.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
import pyarrow as pa

from pipeline import tokenizer_engines
from pipeline.encoder import Encoder
from pipeline.tokenizer_engines import TOKENIZERS, EncodeText, Engine, Ids, Offsets

KEY = "sentencepiece"  # of the decoder: the model, base64
# What manifests say; the type is in the module that tokens depend on, and stays as it is
SENTENCEPIECE = cast("Engine", "sentencepiece")


class SentencePieceEncoder(Encoder):
    """Encodes by the library, whatever engine it is given."""

    @cached_property
    def _encode_text(self) -> EncodeText:
        return loaded(SENTENCEPIECE, self.json)


def model_of(spec: Mapping[str, Any]) -> str | None:
    """The model that a tokenizer.json was made of, base64; None: of none."""
    decoder = spec.get("decoder")
    return decoder.get(KEY) if isinstance(decoder, dict) else None


def loaded(engine: Engine, tokenizer_json: bytes) -> EncodeText:
    """Any engine, once a process."""
    if engine != SENTENCEPIECE:
        return tokenizer_engines.loaded(engine, tokenizer_json)
    return _loaded(tokenizer_json)


@lru_cache(maxsize=TOKENIZERS)
def _loaded(tokenizer_json: bytes) -> EncodeText:
    import sentencepiece

    model = base64.b64decode(json.loads(tokenizer_json)["decoder"][KEY])
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def encode(texts: pa.Array) -> tuple[Ids, Offsets]:
        """On the calling thread: the pipeline runs one process per core."""
        rows = processor.encode(texts.to_pylist(), num_threads=1)
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        ids = itertools.chain.from_iterable(rows)
        return np.fromiter(ids, np.uint32, int(offsets[-1])), offsets

    return encode
