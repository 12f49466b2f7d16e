"""Bits per byte: which tokens and bytes count, sums instead of means, chunks, batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from mixtures.heldout import HeldoutSet
from pipeline import schema
from trainer.attention import Scope
from trainer.evaluate import score
from trainer.items import Items, tokenize
from trainer.model import Decoder, initialize
from trainer.parallel.world import World
from trainer.shapes import Shape

ONE = World(0, 1, torch.device("cpu"), None)


def _model(vocabulary: int = 30) -> Decoder:
    model = Decoder(Shape(width=16, depth=1, heads=2, kv_heads=1, ffn=16), vocabulary)
    initialize(model, 0)
    return model


def _items(lengths: list[int]) -> Items:
    rng = np.random.default_rng(0)
    ids = tuple(rng.integers(0, 30, n) for n in lengths)
    columns = {name: ["x"] * len(ids) for name in ("set", "language", "source")}
    hashes = pa.array([bytes([n] * 16) for n in range(len(ids))], schema.HASH)
    sizes = {"num_bytes": lengths, "num_tokens": [max(0, n - 1) for n in lengths]}
    return Items(pa.table({**columns, "content_hash": hashes, **sizes}), ids)


def _alone(model: Decoder, ids: np.ndarray) -> float:
    """Nats of all but the first token, by the definition."""
    tokens = torch.from_numpy(ids)[None]
    with torch.no_grad():
        logits = model(tokens[:, :-1], Scope(torch.zeros_like(tokens[:, :-1])))
    return float(-logits.log_softmax(-1)[0].gather(1, tokens[0, 1:, None]).sum())


@pytest.mark.parametrize("batch_windows", [1, 2, 50])
def test_each_token_but_the_first_is_scored_once(batch_windows: int) -> None:
    model, items = _model(), _items([5, 0, 1, 2, 21, 9, 8, 17])
    nats = score(model, items, 8, batch_windows, ONE)
    expected = []
    for ids in items.ids:  # chunks of 8 inputs, which share one token with the next
        chunks = [ids[at : at + 9] for at in range(0, max(0, len(ids) - 1), 8)]
        expected.append(sum(_alone(model, chunk) for chunk in chunks))
    np.testing.assert_allclose(nats, expected, rtol=1e-5)
    assert nats[1] == nats[2] == 0.0


def test_no_items_give_no_scores() -> None:
    assert score(_model(), _items([]), 8, 4, ONE).tolist() == []


TEXTS = ("the cat", "我们在", "🙂", "a", "", " x", "line\r\nline")


def _heldout() -> list[HeldoutSet]:
    documents = tuple((schema.text_hash(text.encode()).hex(), text) for text in TEXTS)
    return [HeldoutSet("c/en/s", "en", "s", documents)]


def test_without_bos_the_first_token_and_its_bytes_do_not_count(data: Path) -> None:
    items = tokenize(_heldout(), data / "tokenizer.json", None)
    ids = {text: row.tolist() for text, row in zip(TEXTS, items.ids, strict=True)}
    assert (len(ids["the cat"]), len(ids["🙂"]), len(ids["a"]), len(ids[""])) == (2, 4, 1, 0)
    # "the" is a token; 我 and 🙂 begin with a piece of two bytes and of one
    assert items.table["num_bytes"].to_pylist() == [4, 7, 3, 0, 0, 1, 9]
    tokens = [max(0, len(row) - 1) for row in ids.values()]
    assert items.table["num_tokens"].to_pylist() == tokens


def test_with_bos_all_text_counts(data: Path) -> None:
    items = tokenize(_heldout(), data / "tokenizer.json", 7)
    assert items.table["num_bytes"].to_pylist() == [len(text.encode()) for text in TEXTS]
    assert [row[0] for row in items.ids] == [7] * len(TEXTS)
    assert items.table["num_tokens"].to_pylist() == [len(row) - 1 for row in items.ids]
    hashes = [schema.text_hash(text.encode()) for text in TEXTS]
    assert items.table["content_hash"].to_pylist() == hashes
