"""Texts to token ids by a tokenizer that was read: tokenizer.py reads and checks it.

The tokens of a corpus depend on this module and on what it imports, so nothing of settings or of
file formats belongs here: a change of those would make all tokens anew, and refuse every run that
reads windows of them.

A control token spelled out in a text (`<|endoftext|>` on a page about language models) is encoded
as ordinary text and counted (tokenizers #1850, dolma PR #176).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline import long_texts
from pipeline.literals import count_literals
from pipeline.tokenizer_engines import EncodeText, Engine, loaded

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Encoder:
    """A tokenizer and its policy. Picklable: the engine is loaded at the first `encode`."""

    hash: str  # 16 hex digits over the canonical tokenizer.json and the policy
    vocab_size: int  # largest id + 1
    bos_id: int | None
    eos_id: int | None
    engine: Engine
    json: bytes  # tokenizer.json as it was read
    literals: tuple[str, ...]  # control tokens, longest first

    @property
    def dtype(self) -> np.dtype[Any]:
        """uint16 only where every id fits (dolma wrapped 100,277 ids into uint16)."""
        return np.dtype(np.uint16 if self.vocab_size <= 1 << 16 else np.uint32)

    @property
    def policy(self) -> dict[str, Any]:
        """What policy.json and corpus.json keep."""
        return {
            "hash": self.hash,
            "dtype": self.dtype.name,
            "vocab_size": self.vocab_size,
            "bos_id": self.bos_id,
            "eos_id": self.eos_id,
        }

    @cached_property
    def _encode_text(self) -> EncodeText:
        return loaded(self.engine, self.json)

    def encode(self, texts: pa.Array) -> tuple[npt.NDArray[Any], Offsets, npt.NDArray[np.int32]]:
        """Token ids of a batch of texts (string array, no nulls).

        Returns: ids of all documents in one row, of `dtype`, bos and eos included; int64 offsets,
        one more than documents; the number of control tokens spelled out in each text.
        """
        ids, offsets = long_texts.encode(texts, self._encode_text)
        if len(ids) and (largest := int(ids.max())) >= self.vocab_size:
            row = int(np.searchsorted(offsets, int(ids.argmax()), side="right")) - 1
            raise ValueError(
                f"tokenizer {self.hash} ({self.engine}) gave id {largest} for text {row} of a "
                f"batch, beyond its {self.vocab_size} ids; its tokenizer.json is damaged"
            )
        ids, offsets = _surround(ids.astype(self.dtype), offsets, self.bos_id, self.eos_id)
        return ids, offsets, count_literals(texts, self.literals)


def _surround(
    ids: npt.NDArray[Any], offsets: Offsets, bos_id: int | None, eos_id: int | None
) -> tuple[npt.NDArray[Any], Offsets]:
    """Put bos before and eos after each document."""
    extra = (bos_id is not None) + (eos_id is not None)
    wide = offsets + extra * np.arange(len(offsets), dtype=np.int64)
    out = np.empty(wide[-1], ids.dtype)
    is_text = np.ones(len(out), bool)
    if bos_id is not None:
        out[wide[:-1]] = bos_id
        is_text[wide[:-1]] = False
    if eos_id is not None:
        out[wide[1:] - 1] = eos_id
        is_text[wide[1:] - 1] = False
    out[is_text] = ids
    return out, wide
