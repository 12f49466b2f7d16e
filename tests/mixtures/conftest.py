"""Hand-made token shards for the tests of packing and loading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from mixtures.packing import Documents
from pipeline import schema
from pipeline.corpus import part_name
from pipeline.files import write_json

TOKENIZER = "0123456789abcdef"
VOCAB_SIZE = 60_000
WriteTokens = Callable[..., Documents]


@pytest.fixture(scope="session")
def write_tokens() -> WriteTokens:
    return _write_tokens


def _write_tokens(
    root: Path, texts: list[list[int]], shard_rows: int, batch_rows: int = 3
) -> Documents:
    """Token shards of `shard_rows` documents; the id of a document follows from its number."""
    folder = root / "tokens" / TOKENIZER
    policy = {"hash": TOKENIZER, "dtype": "uint16", "vocab_size": VOCAB_SIZE}
    write_json(folder / "policy.json", policy | {"bos_id": None, "eos_id": 0})
    table = schema.tokens(pa.uint16())
    for part, first in enumerate(range(0, len(texts), shard_rows)):
        shard = texts[first : first + shard_rows]
        with pa.ipc.new_file(str(folder / part_name(part, "arrow")), table) as writer:
            for begin in range(0, len(shard), batch_rows):
                ids = pa.array(shard[begin : begin + batch_rows], pa.large_list(pa.uint16()))
                writer.write_batch(pa.record_batch([ids], schema=table))
    number = np.arange(len(texts))
    names = [xxhash.xxh3_128_digest(str(n).encode()) for n in number]
    documents = Documents(
        id=np.frombuffer(b"".join(names), "V16"),
        content_hash=np.frombuffer(
            b"".join(xxhash.xxh3_128_digest(np.array(t, np.int64).tobytes()) for t in texts), "V16"
        ),
        part=number // shard_rows,
        row=number % shard_rows,
        num_tokens=np.array([len(text) for text in texts], np.int64),
        num_bytes=np.array([2 * len(text) for text in texts], np.int64),
    )
    return documents.take(np.array(sorted(range(len(texts)), key=names.__getitem__), np.int64))
