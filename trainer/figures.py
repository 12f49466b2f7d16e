"""How fast a step was, beside what its devices can do; and what a profile says of one.

Of a step, in metrics.jsonl: `tokens_per_second`, `data_seconds` (waited for its windows), `mfu` and
`mfu_full` where the peak of the device is known (flops.py), `checkpoint_stall_seconds`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from trainer.flops import flops_per_token, flops_per_token_full, multiplied_parameters, peak_of
from trainer.parallel.world import World
from trainer.settings import RunSettings

COLLECTIVES = ("nccl", "gloo:")  # begin the names of what a profile has of communication


@dataclass(frozen=True)
class Speed:
    """FLOPs of a token by both conventions, and what all devices of the run make in a second."""

    flops: int
    flops_full: int
    peak: float | None  # None: not known

    def told(self, tokens_per_second: float) -> dict[str, float]:
        """Model FLOPs utilisation, from 0 to 1."""
        if self.peak is None:
            return {}
        rate = tokens_per_second / self.peak
        return {"mfu": self.flops * rate, "mfu_full": self.flops_full * rate}


def speed_of(run: RunSettings, vocab_size: int, length: int, world: World) -> Speed:
    shape = run.model.shape
    size = multiplied_parameters(shape, vocab_size)
    attention = shape.heads * shape.head_width
    peak = None if run.peak_tflops is None else run.peak_tflops * 1e12
    if shape.encoder_depth:
        return Speed(0, 0, None)  # the formula is of a decoder
    if peak is None and world.device.type == "cuda":
        peak = peak_of(torch.cuda.get_device_name(world.device))
    return Speed(
        flops_per_token(size, shape.depth, attention, length),
        flops_per_token_full(size, shape.depth, attention, length),
        None if peak is None else peak * world.size,
    )


@contextmanager
def profiled(folder: Path, step: int, world: World, wanted: int | None) -> Iterator[dict[str, Any]]:
    """Of the step that is wanted, write profile/step-N.rank-R.json, for ui.perfetto.dev; the
    yielded dict holds afterwards the share of its time in which collectives ran."""
    if step != wanted:
        yield {}
        return
    activities = [ProfilerActivity.CPU]
    if world.device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    found: dict[str, Any] = {}
    with profile(activities=activities) as profiler:
        yield found
    (folder / "profile").mkdir(exist_ok=True)
    path = folder / "profile" / f"step-{step:08d}.rank-{world.rank}.json"
    profiler.export_chrome_trace(str(path))
    found["communication_share"] = communication_share(
        [(e.name, e.time_range.start, e.time_range.end) for e in profiler.events() or ()]
    )


def communication_share(events: list[tuple[str, float, float]]) -> float:
    """Time in which at least one collective ran / time from the first event to the last.

    Args:
        events: (name, begin, end), in any unit.
    """
    if not events:
        return 0.0
    whole = max(end for _, _, end in events) - min(begin for _, begin, _ in events)
    covered, reached = 0.0, float("-inf")
    for begin, end in sorted((b, e) for name, b, e in events if name.startswith(COLLECTIVES)):
        covered += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return covered / whole if whole else 0.0
