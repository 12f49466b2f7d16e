"""Where a process stands among its peers: its place on the mesh, its share of a batch, sums.

Under torchrun (RANK, WORLD_SIZE in the environment) there is a process group, gloo on CPUs and
NCCL on GPUs, and one mesh with named axes; a single process has neither. Processes that differ in
`replicate` or `fsdp` alone take slices of the global batch by position, so the batch does not
depend on the layout; those that differ in another axis read the same windows.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from mixtures.stream import rank_share
from pipeline.config import ConfigError
from trainer.parallel.layout import AXES, ONE, Layout, make_layout
from trainer.parallel.together import together
from trainer.settings import RunSettings

TIMEOUT = timedelta(minutes=30)  # of a collective; the first one waits for slow starters


@dataclass(frozen=True)
class World:
    rank: int
    size: int
    device: torch.device
    mesh: DeviceMesh | None  # of the axes AXES; None: one process
    layout: Layout = ONE

    @property
    def first(self) -> bool:
        """Whether this rank writes the files that exist once."""
        return self.rank == 0

    @property
    def place(self) -> Layout:
        """Along each axis, from 0."""
        return self.layout.place(self.rank)

    @property
    def data_rank(self) -> int:
        """Which of the `layout.data` parts of a batch this rank computes."""
        return self.place.replicate * self.layout.fsdp + self.place.fsdp

    @property
    def counts(self) -> bool:
        """Whether what it computes is no copy of what a neighbour on `tensor` or an earlier stage
        does."""
        return self.place.tensor == 0 and self.place.pipeline == self.layout.pipeline - 1

    def axis(self, name: str) -> DeviceMesh:
        """The processes that differ from this one in this axis alone."""
        assert self.mesh is not None, "one process has no axes"
        return self.mesh[name]


@contextmanager
def join_world(run: RunSettings) -> Iterator[World]:
    """The process group of torchrun, or none; left again at the end. See together.py for failures.

    Raises:
        ConfigError: `parallel` asks for another number of processes than were started, or
            `device` for a GPU where there is none.
    """
    if run.threads is not None:
        torch.set_num_threads(run.threads)
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    layout = make_layout(run, size)
    device = _device(run)
    if device.type == "cpu":
        keep_freed_memory()
    else:
        torch.cuda.set_device(device)
    if size == 1:
        yield World(0, 1, device, None)
        return
    dist.init_process_group("gloo" if device.type == "cpu" else "nccl", timeout=TIMEOUT)
    try:
        with together(rank, size):
            yield World(rank, size, device, make_mesh(device.type, layout), layout)
    finally:
        dist.destroy_process_group()


def _device(run: RunSettings) -> torch.device:
    if run.device == "cpu" or (run.device == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    number = int(os.environ.get("LOCAL_RANK", 0))
    if number >= found:
        raise ConfigError(
            f"key `device`: {run.device}: process {number} of this machine has no GPU, torch "
            f"{torch.__version__} sees {found}; use `device: cpu`, start at most one process a "
            "GPU, or install a torch with CUDA and its driver"
        )
    return torch.device("cuda", number)


def make_mesh(kind: str, layout: Layout) -> DeviceMesh:
    return init_device_mesh(kind, astuple(layout), mesh_dim_names=AXES)


def keep_freed_memory() -> None:
    """Let glibc keep freed blocks: it gives large ones back, and each step pays for new pages.

    0.4M model, vocabulary 4,096, 16 windows of 256 at a time: 10.7k tokens per CPU second without,
    16.0k with it. It costs that memory stays at its peak. Other C libraries have no mallopt.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-4, 0)  # M_MMAP_MAX: no block has a mapping of its own
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def share(num_windows: int, world: World) -> tuple[int, int, int]:
    """(first, count, rounds): this rank's windows of a batch, and the most that any rank has."""
    parts = world.layout.data
    return *rank_share(num_windows, world.data_rank, parts), -(-num_windows // parts)


def sum_over_ranks(value: Tensor, world: World) -> Tensor:
    """Elementwise sum over the ranks that count, each of which has its own part of it; every rank
    gets it."""
    if world.mesh is not None:
        value = value if world.counts else torch.zeros_like(value)
        dist.all_reduce(value)
    return value


def wait_for_all(world: World) -> None:
    if world.mesh is not None:
        dist.barrier()
