"""SIGTERM while steps are made: the run saves at the end of the step, then ends as it would have.

Slurm, Kubernetes and torchrun send it some 30 s before SIGKILL. A second one ends the run at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from trainer.parallel.world import World


class Stop:
    """Whether the run was asked to end."""

    def __init__(self) -> None:
        self.asked = False
        self.before: Any = signal.SIG_DFL

    def receive(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            self._end()
        self.asked = True

    def on_any(self, world: World) -> bool:
        """Whether any rank was asked: all end after the same step."""
        if world.mesh is None:
            return self.asked
        asked = torch.tensor(float(self.asked), device=world.device)
        dist.all_reduce(asked, dist.ReduceOp.MAX)
        return bool(asked.item())

    def leave(self) -> None:
        """End as SIGTERM does without this: cli.py exits with 143."""
        self._end()

    def _end(self) -> None:
        signal.signal(signal.SIGTERM, self.before)
        signal.raise_signal(signal.SIGTERM)


@contextmanager
def between_steps() -> Iterator[Stop]:
    """Keep SIGTERM for the end of a step, in the main thread; elsewhere nothing is changed."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    stop.before = signal.signal(signal.SIGTERM, stop.receive)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, stop.before)
    if stop.asked:  # after the last step was saved
        stop.leave()
