"""A step that does not fit the memory, told with what helps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from trainer.parallel.world import World
from trainer.settings import RunSettings

CPU_REFUSED = "DefaultCPUAllocator"  # torch has no class of error for it on CPUs


class OutOfMemory(ValueError):
    """The memory of a device does not hold a step."""


@contextmanager
def enough_memory(run: RunSettings, world: World) -> Iterator[None]:
    """Raises OutOfMemory, with the remedies, in place of what torch raises."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        refused = next((e for e in _causes(error) if _is_refusal(e)), None)
        if refused is None:
            raise
        kept = "" if run.parallel.recompute else ", `parallel.recompute: true`"
        raise OutOfMemory(
            f"out of memory on {world.device} with `micro_batch: {run.micro_batch}`, layout "
            f"{world.layout}: {str(refused).splitlines()[0]} Lower `micro_batch`{kept} or give a "
            "larger `parallel.fsdp`; `assay train ... --dry-run` says what a layout needs"
        ) from error


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it came from: pipeline schedules wrap what a stage raises."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__


def _is_refusal(error: BaseException) -> bool:
    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or CPU_REFUSED in str(error)
