"""Held-out documents as token ids, with the bytes that their scored tokens stand for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import tokenizers

from mixtures import heldout
from mixtures.heldout import HeldoutSet
from pipeline import tokenizer
from pipeline.encoder import Encoder
from pipeline.settings import Tokenizer
from trainer.scores import EVALUATIONS

# The columns of EVALUATIONS that are known before a model is.
KNOWN = pa.schema([field for field in EVALUATIONS if field.name not in ("step", "nats")])


@dataclass(frozen=True)
class Items:
    """Held-out documents, ready to score: `table` has the columns of EVALUATIONS that are known."""

    table: pa.Table
    ids: tuple[np.ndarray, ...]  # of each document: [bos] text, without eos


@dataclass(frozen=True)
class Row:
    """Ids to score from `ids[begin]` on; `owner`: whose nats these are."""

    owner: int
    ids: np.ndarray
    begin: int


def tokenize(sets: Sequence[HeldoutSet], tokenizer_file: Path, bos_id: int | None) -> Items:
    """Items of held-out sets; see evaluate.py for what of a document counts."""
    encoder = tokenizer.load(Tokenizer(file=str(tokenizer_file), eos=None))
    tokens = heldout.tokenize(sets, replace(encoder, bos_id=bos_id))
    unscored = (lambda text, ids: 0) if bos_id is not None else _bytes_of_first(encoder)
    rows, all_ids = [], []
    for group, documents in zip(sets, tokens, strict=True):
        for (content_hash, text), ids in zip(group.documents, documents, strict=True):
            all_ids.append(ids.astype(np.int64))
            rows.append(
                {
                    "set": group.name,
                    "language": group.language,
                    "source": group.source,
                    "content_hash": bytes.fromhex(content_hash),
                    "num_bytes": len(text.encode()) - unscored(text, ids),
                    "num_tokens": max(0, len(ids) - 1),
                }
            )
    return Items(pa.Table.from_pylist(rows, schema=KNOWN), tuple(all_ids))


def _bytes_of_first(encoder: Encoder) -> Callable[[str, np.ndarray], int]:
    """(text, its ids) -> UTF-8 bytes of the text that the first id stands for.

    A byte-level piece has one character for each byte, also where it ends inside a character, which
    no decoder would tell. Other pieces are text, with ▁ for a space, or one byte as <0xE4>. A space
    that the tokenizer put before the text is none of its bytes.
    """
    spec = json.loads(encoder.json)
    piece_of = tokenizers.Tokenizer.from_str(encoder.json.decode()).id_to_token
    byte_level = '"ByteLevel"' in json.dumps(spec.get("decoder"))
    space = "Ġ" if byte_level else "▁"

    def num_bytes(text: str, ids: np.ndarray) -> int:
        if not len(ids):
            return 0
        piece = str(piece_of(int(ids[0])))
        if piece.startswith(space) and not text.startswith(" "):
            piece = piece[1:]
        if byte_level:
            return len(piece)
        return 1 if re.fullmatch("<0x..>", piece) else len(piece.replace("▁", " ").encode())

    return num_bytes
