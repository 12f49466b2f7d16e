"""Held-out documents as token ids, with the bytes that their scored tokens stand for."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import tokenizers

from mixtures.plan import Plan
from mixtures.spec import load_mixture
from pipeline import schema, tokenizer
from pipeline.settings import Tokenizer
from trainer.evaluate import Items
from trainer.settings import RunSettings

EMPTY = schema.HELDOUT.empty_table()


def heldout_items(plan: Plan, run: RunSettings) -> Items:
    """The held-out sets of all corpora of the mixture, in the tokenizer of the plan."""
    sets = [_heldout(Path(root)) for root in load_mixture(run.mixture).corpora.values()]
    table = first_bytes(pa.concat_tables(sets), run.evaluate.max_bytes_per_set)
    return tokenize(table, Path(plan.tokenizer_file), plan.bos_id)


def tokenize(table: pa.Table, tokenizer_file: Path, bos_id: int | None) -> Items:
    """Items of a table of schema.HELDOUT; see evaluate.py for what of a document counts."""
    encoder = tokenizer.load(Tokenizer(file=str(tokenizer_file), eos=None))
    flat, offsets, _ = encoder.encode(table["text"].combine_chunks())
    texts = table["text"].to_pylist()
    ids = [flat[begin:end].astype(np.int64) for begin, end in itertools.pairwise(offsets)]
    num_bytes = [len(text.encode()) for text in texts]
    if bos_id is None:
        pieces = first_pieces(encoder)
        for at, (text, row) in enumerate(zip(texts, ids, strict=True)):
            num_bytes[at] -= pieces(text, int(row[0])) if len(row) else 0
    else:
        ids = [np.concatenate([[bos_id], row]) for row in ids]
    columns = table.select(["set", "language", "source", "content_hash"])
    columns = columns.append_column("num_bytes", pa.array(num_bytes, pa.int64()))
    num_tokens = pa.array([max(0, len(row) - 1) for row in ids], pa.int64())
    return Items(columns.append_column("num_tokens", num_tokens), tuple(ids))


def _heldout(root: Path) -> pa.Table:
    path = root / "heldout" / "documents.parquet"
    return pq.read_table(path, schema=schema.HELDOUT) if path.exists() else EMPTY


def first_bytes(table: pa.Table, max_bytes_per_set: int) -> pa.Table:
    """The first documents of each set by content hash, up to so many bytes, at least one.

    The order is that of a hash, so this is a fair sample, and the same for every run. A document
    that two corpora hold in the same set stands once.
    """
    table = table.sort_by([("set", "ascending"), ("content_hash", "ascending")])
    sets, hashes = table["set"].to_pylist(), table["content_hash"].to_pylist()
    sizes = pc.binary_length(table["text"].cast(pa.binary())).to_pylist()
    used: dict[str, int] = {}
    keep, before = [], None
    for key, size in zip(zip(sets, hashes, strict=True), sizes, strict=True):
        fits = key[0] not in used or used[key[0]] + size <= max_bytes_per_set
        keep.append(key != before and fits)
        if keep[-1]:
            used[key[0]] = used.get(key[0], 0) + size
        before = key
    return table.filter(pa.array(keep, pa.bool_()))


def first_pieces(encoder: tokenizer.Encoder) -> Callable[[str, int], int]:
    """(text, its first token) -> UTF-8 bytes of the text that the token stands for.

    A byte-level piece has one character for each byte, also where it ends inside a character, which
    no decoder would tell. Other pieces are text, with ▁ for a space, or one byte as <0xE4>. A space
    that the tokenizer put before the text is none of its bytes.
    """
    spec = json.loads(encoder.json)
    piece_of = tokenizers.Tokenizer.from_str(encoder.json.decode()).id_to_token
    byte_level = '"ByteLevel"' in json.dumps(spec.get("decoder"))
    space = "Ġ" if byte_level else "▁"

    def num_bytes(text: str, token: int) -> int:
        piece = str(piece_of(token))
        if piece.startswith(space) and not text.startswith(" "):
            piece = piece[1:]
        if byte_level:
            return len(piece)
        return 1 if re.fullmatch("<0x..>", piece) else len(piece.replace("▁", " ").encode())

    return num_bytes
