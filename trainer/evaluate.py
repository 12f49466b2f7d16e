"""Nats of the held-out documents under a model; scores.py makes bits per byte of them.

What counts is the text. With a BOS token, each of its tokens is predicted from what stands before
it. Without one, the first token of a document has nothing before it in training either: it is not
scored, and its bytes are not counted. EOS is no text and is never scored. All arms are treated
alike. Long documents are cut as in training: chunks of `sequence_length` inputs, each token
predicted once, from its own chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from trainer.cloze import Cloze
from trainer.items import Items, Row
from trainer.losses import IGNORED
from trainer.objectives import CAUSAL, make_example
from trainer.parallel.world import World, sum_over_ranks
from trainer.scores import EVALUATIONS
from trainer.step import losses_of


def score(
    model: nn.Module, items: Items, length: int, batch_windows: int, world: World
) -> np.ndarray:
    """Nats of each item; every rank calls it and gets all of them."""
    rows = [
        Row(item, ids[at : at + length + 1], 1)
        for item, ids in enumerate(items.ids)
        for at in range(0, len(ids) - 1, length)
    ]
    return score_rows(model, rows, len(items.ids), batch_windows * length, world)


def answer(
    model: nn.Module, cloze: Cloze, length: int, batch_windows: int, world: World
) -> np.ndarray:
    """Nats of each choice after its context, and alone; see cloze.py."""
    owners = len(cloze.rows)
    return score_rows(model, cloze.rows, owners, batch_windows * length, world)


def score_rows(
    model: nn.Module, rows: Sequence[Row], num_owners: int, batch_tokens: int, world: World
) -> np.ndarray:
    """Nats of each owner, over its rows; every rank calls it and gets all of them.

    Rows are batched by length, `batch_tokens` at a time, padding counted.
    """
    rows = sorted(rows, key=lambda row: len(row.ids), reverse=True)
    nats = torch.zeros(num_owners, dtype=torch.float64)
    batches = list(_batches([len(row.ids) for row in rows], batch_tokens))
    for turn in range(-(-len(batches) // world.layout.data)):
        mine = turn * world.layout.data + world.data_rank
        chosen = [rows[i] for i in batches[min(mine, len(batches) - 1)]]
        losses = _losses(model, chosen, world)
        if mine < len(batches):  # else: only there so that all ranks take part in collectives
            nats.index_add_(0, torch.tensor([row.owner for row in chosen]), losses)
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
def _losses(model: nn.Module, rows: Sequence[Row], world: World) -> torch.Tensor:
    """Nats of each row, fp64, on the CPU. Padding is a document of its own for each token."""
    multiple = world.layout.window_multiple
    longest = -(-(len(rows[0].ids) - 1) // multiple) * multiple + 1
    tokens = np.zeros((len(rows), longest), np.int64)
    documents = np.tile(np.arange(1, longest + 1, dtype=np.int32), (len(rows), 1))
    counted = np.zeros((len(rows), longest - 1), bool)
    for at, row in enumerate(rows):
        tokens[at, : len(row.ids)] = row.ids
        documents[at, : len(row.ids)] = 0
        counted[at, row.begin - 1 :] = True
    example = make_example(CAUSAL, torch.from_numpy(tokens), torch.from_numpy(documents), 0, 0)
    labels_BT = example.labels_BT.masked_fill(~torch.from_numpy(counted), IGNORED)
    losses_BT = losses_of(model, replace(example, labels_BT=labels_BT).to(world.device), world)
    return losses_BT.double().sum(1).cpu()


def scores_of(items: Items, step: int, nats: np.ndarray) -> pa.Table:
    """Rows of EVALUATIONS."""
    table = items.table.append_column("step", pa.array([step] * len(nats), pa.int64()))
    table = table.append_column("nats", pa.array(nats, pa.float64()))
    return table.select(EVALUATIONS.names).cast(EVALUATIONS)
