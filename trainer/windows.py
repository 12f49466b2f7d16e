"""Packed windows as tensors, for any loop in PyTorch: with a DataLoader around it, or without.

Shapes: B windows of this rank, S = sequence_length + 1 tokens of a whole window.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from mixtures import loader_state
from mixtures.batch import Batch
from mixtures.loader import Loader, OnDamage
from mixtures.plan import Plan
from mixtures.prefetch import ahead
from mixtures.published import open_plan
from mixtures.shard_cache import ShardCache
from mixtures.stream import AHEAD, turns

Tensors = dict[str, Any]


class Windows(IterableDataset[Tensors]):
    """The batches of one rank, from `position` to the end of the plan.

    Each is {"tokens": int64 [B, S], "documents": int32 [B, S], "position": int}: inputs are
    tokens[:, :-1], targets tokens[:, 1:], `documents` rises where a document begins, and `position`
    is the state after this batch. Tensors are pinned where CUDA is there (not in workers, which
    must not touch it: `pin_memory=True` of the DataLoader does it for them).

    With workers use DataLoader(windows, batch_size=None, num_workers=N): the same batches in the
    same order for any N.

    Args:
        plan: a plan, or where `assay mix --publish` put one: a folder or URL.
        batch_windows: of the global batch, over all ranks.
        rank, ranks: default: RANK and WORLD_SIZE, as torchrun sets them.
        position: the first window, counted over all ranks.
        ahead: batches made by a thread before they are asked for; 0: none, and no thread.
    """

    def __init__(
        self, plan: Plan | str | Path, batch_windows: int, *, rank: int | None = None,
        ranks: int | None = None, position: int = 0, cache: ShardCache | None = None,
        on_damage: OnDamage = "fail", ahead: int = AHEAD,
    ) -> None:  # fmt: skip
        self.plan = plan if isinstance(plan, Plan) else open_plan(plan)
        self.batch_windows, self.position = batch_windows, position
        self._rank = int(os.environ.get("RANK", 0)) if rank is None else rank
        self._ranks = int(os.environ.get("WORLD_SIZE", 1)) if ranks is None else ranks
        if batch_windows < 1 or not 0 <= self._rank < self._ranks:
            raise ValueError(
                f"batch_windows {batch_windows}, rank {self._rank} of {self._ranks}: a batch has "
                "at least one window, and ranks count from 0"
            )
        self._cache, self._on_damage, self._ahead = cache, on_damage, ahead

    def __iter__(self) -> Iterator[Tensors]:
        worker = get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        pin = worker is None and torch.cuda.is_available()
        loader = Loader(self.plan, self._cache, self._on_damage)
        places = turns(
            self.position, len(loader), self.batch_windows, self._rank, self._ranks, number, workers
        )
        made = (tensors(loader.batch(t.first, t.num_windows), t.after, pin) for t in places)
        with closing(loader), closing(ahead(made, self._ahead)) as batches:
            for batch in batches:
                self.position = batch["position"]
                yield batch

    def state_dict(self, batch: Tensors | None = None) -> dict[str, Any]:
        """Where a run goes on after `batch`; default: after the last one that this process made,
        which with workers is not this process."""
        return loader_state.of(self.plan, self.position if batch is None else batch["position"])

    def load_state_dict(self, state: dict[str, Any], *, allow_other_data: bool = False) -> None:
        """Go on where a state was taken, by whatever number of ranks and workers.

        Raises:
            StateError: it belongs to other data; says what differs.
        """
        self.position = loader_state.position_in(
            self.plan, state, allow_other_data=allow_other_data
        )


def tensors(batch: Batch, position: int, pin: bool = False) -> Tensors:
    """A batch as tensors, in pinned memory if asked: then a copy to the GPU need not wait."""
    tokens_BS, documents_BS = torch.from_numpy(batch.tokens), torch.from_numpy(batch.documents)
    if pin:
        tokens_BS, documents_BS = tokens_BS.pin_memory(), documents_BS.pin_memory()
    return {"tokens": tokens_BS, "documents": documents_BS, "position": position}
