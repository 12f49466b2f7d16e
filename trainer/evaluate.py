"""Bits per byte of the held-out sets: nats / ln 2 / UTF-8 bytes of the original text.

The figure of a set, a language or a source is the sum over its documents divided by the sum over
its documents, never a mean of means (torchtitan #4167). What is kept is one row a document.

What counts is the text. With a BOS token, each of its tokens is predicted from what stands before
it. Without one, the first token of a document has nothing before it in training either: it is not
scored, and its bytes are not counted. EOS is no text and is never scored. All arms are treated
alike. Long documents are cut as in training: chunks of `sequence_length` inputs, each token
predicted once, from its own chunk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from torch import nn

from pipeline import schema
from pipeline.files import replacing
from trainer.model import token_losses
from trainer.parallel import World, sum_over_ranks

EVALUATIONS = pa.schema(
    [
        ("step", pa.int64()),
        ("set", pa.string()),
        ("language", pa.string()),
        ("source", pa.string()),
        ("content_hash", schema.HASH),
        ("nats", pa.float64()),  # of the scored tokens
        ("num_bytes", pa.int64()),  # of the original text, of the scored tokens
        ("num_tokens", pa.int64()),  # scored
    ]
)


@dataclass(frozen=True)
class Items:
    """Held-out documents, ready to score: `table` has the columns of EVALUATIONS that are known."""

    table: pa.Table
    ids: tuple[np.ndarray, ...]  # of each document: [bos] text, without eos


def score(
    model: nn.Module, items: Items, length: int, batch_windows: int, world: World
) -> np.ndarray:
    """Nats of each item; every rank calls it and gets all of them.

    Chunks are batched by length, `batch_windows` x `length` tokens at a time.
    """
    chunks = [
        (item, ids[at : at + length + 1])
        for item, ids in enumerate(items.ids)
        for at in range(0, len(ids) - 1, length)
    ]
    chunks.sort(key=lambda chunk: len(chunk[1]), reverse=True)
    nats = torch.zeros(len(items.ids), dtype=torch.float64)
    batches = list(_batches([len(ids) for _, ids in chunks], batch_windows * length))
    for turn in range(-(-len(batches) // world.size)):
        mine = turn * world.size + world.rank
        chosen = [chunks[i] for i in batches[min(mine, len(batches) - 1)]]
        losses = _losses(model, [ids for _, ids in chosen], world.device)
        if mine < len(batches):  # else: only there so that all ranks take part in collectives
            nats.index_add_(0, torch.tensor([item for item, _ in chosen]), losses)
    result: np.ndarray = sum_over_ranks(nats.to(world.device), world).cpu().numpy()
    return result


def _batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Numbers of chunks, in order, of which the padded size is at most `tokens` (or one chunk)."""
    batch: list[int] = []
    for number, _ in enumerate(lengths):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


@torch.no_grad()
def _losses(model: nn.Module, rows: Sequence[np.ndarray], device: torch.device) -> torch.Tensor:
    """Nats of each row, fp64, on the CPU. Padding is a document of its own for each token."""
    longest = len(rows[0])
    tokens = np.zeros((len(rows), longest), np.int64)
    documents = np.tile(np.arange(1, longest + 1, dtype=np.int32), (len(rows), 1))
    for at, ids in enumerate(rows):
        tokens[at, : len(ids)] = ids
        documents[at, : len(ids)] = 0
    losses_BT = token_losses(
        model, torch.from_numpy(tokens).to(device), torch.from_numpy(documents).to(device)
    )
    return losses_BT.double().sum(1).cpu()


def scores_of(items: Items, step: int, nats: np.ndarray) -> pa.Table:
    """Rows of EVALUATIONS."""
    table = items.table.append_column("step", pa.array([step] * len(nats), pa.int64()))
    table = table.append_column("nats", pa.array(nats, pa.float64()))
    return table.select(EVALUATIONS.names).cast(EVALUATIONS)


def keep_scores(path: Path, table: pa.Table) -> None:
    """Add the scores of one step to evaluations.parquet, in place of earlier ones of that step."""
    if path.exists() and len(table):
        others = pq.read_table(path).filter(pc.field("step") != table["step"][0])
        table = pa.concat_tables([others, table])
    with replacing(path) as temporary:
        pq.write_table(table, temporary)


def bits_per_byte(table: pa.Table, by: str = "set") -> dict[str, float]:
    """Bits per byte by set, language or source: sum of nats / ln 2 / sum of bytes.

    A text that stands in several sets counts once in its language and once in its source.
    """
    once = table.group_by([by, "content_hash"], use_threads=False).aggregate(
        [("nats", "first"), ("num_bytes", "first")]
    )
    groups = once.group_by(by).aggregate([("nats_first", "sum"), ("num_bytes_first", "sum")])
    return {
        row[by]: row["nats_first_sum"] / math.log(2) / row["num_bytes_first_sum"]
        for row in groups.sort_by(by).to_pylist()
        if row["num_bytes_first_sum"]
    }
