"""The batches of one rank, in order, made ahead: what a trainer loops over.

A global batch is `batch_windows` consecutive positions; each rank takes its share of it, and each
worker of a rank every so many of these shares. So the global sequence is the same for any number of
ranks and workers, and state is one position, which any other number of them goes on from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mixtures.batch import Batch
from mixtures.loader import Loader
from mixtures.prefetch import ahead

AHEAD = 4  # batches


class Turn(NamedTuple):
    """A rank's part of a global batch."""

    first: int  # position of its first window
    num_windows: int  # 0 where the last batch has fewer than there are ranks
    after: int  # position of the next global batch


def rank_share(num_windows: int, rank: int, ranks: int) -> tuple[int, int]:
    """(first, count): which windows of a batch belong to a rank; they differ by one at most."""
    first = rank * num_windows // ranks
    return first, (rank + 1) * num_windows // ranks - first


def turns(
    begin: int, end: int, batch_windows: int, rank: int = 0, ranks: int = 1,
    worker: int = 0, workers: int = 1,
) -> Iterator[Turn]:  # fmt: skip
    """What a worker of a rank reads, from position `begin` on."""
    for at in range(begin + worker * batch_windows, end, workers * batch_windows):
        num = min(batch_windows, end - at)
        first, share = rank_share(num, rank, ranks)
        yield Turn(at + first, share, at + num)


class Stream:
    """Batches of one rank, from a position to the end of the plan.

    Iterating goes on at `position`, which moves with each batch that was handed out, not with what
    is made ahead of it.
    """

    def __init__(
        self, loader: Loader, batch_windows: int, *, rank: int = 0, ranks: int = 1,
        position: int = 0, ahead: int = AHEAD,
    ) -> None:  # fmt: skip
        if batch_windows < 1 or not 0 <= rank < ranks:
            raise ValueError(
                f"batch_windows {batch_windows}, rank {rank} of {ranks}: a batch has at least one "
                "window, and ranks count from 0"
            )
        self.loader, self.batch_windows, self.position = loader, batch_windows, position
        self._rank, self._ranks, self._ahead = rank, ranks, ahead

    def __iter__(self) -> Iterator[Batch]:
        places = turns(self.position, len(self.loader), self.batch_windows, self._rank, self._ranks)
        made = ((turn, self.loader.batch(turn.first, turn.num_windows)) for turn in places)
        for turn, batch in ahead(made, self._ahead):
            self.position = turn.after
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """A position and what it belongs to; the same on every rank."""
        return self.loader.state(self.position)

    def load_state_dict(self, state: dict[str, Any], *, allow_other_data: bool = False) -> None:
        """Go on where a state was taken, by whatever number of ranks.

        Raises:
            StateError: it belongs to other data; says what differs.
        """
        self.position = self.loader.resume(state, allow_other_data=allow_other_data)
