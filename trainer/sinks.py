"""Where a run's numbers go besides metrics.jsonl: trackers of others, by name in run.yaml.

A tracker that is not installed is a mistake told at the start; one that fails later is told once
and left: no run ends because of its plots. metrics.jsonl stays the record. A run that goes on after
a kill writes some steps again; each tracker is told the step, so the later value stands.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.config import ConfigError
from trainer.metrics import Progress

Log = Callable[[Mapping[str, float], int], None]  # (numbers by name, step)
Close = Callable[[], None]


def _tensorboard(folder: Path, settings: Mapping[str, Any], step: int) -> tuple[Log, Close]:
    writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter(
        str(folder / "tensorboard"), purge_step=step or None
    )

    def log(numbers: Mapping[str, float], at: int) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, at)

    return log, writer.close


def _wandb(folder: Path, settings: Mapping[str, Any], step: int) -> tuple[Log, Close]:
    wandb = importlib.import_module("wandb")
    run = wandb.init(
        project="assay", name=folder.name, id=folder.name, dir=str(folder), config=dict(settings),
        resume="allow",
    )  # fmt: skip
    return (lambda numbers, at: run.log(dict(numbers), step=at)), run.finish


def _trackio(folder: Path, settings: Mapping[str, Any], step: int) -> tuple[Log, Close]:
    trackio = importlib.import_module("trackio")
    trackio.init(project="assay", name=folder.name, config=dict(settings), resume="allow")
    return (lambda numbers, at: trackio.log(dict(numbers), step=at)), trackio.finish


OPENERS = {"tensorboard": _tensorboard, "wandb": _wandb, "trackio": _trackio}


class Sinks:
    """The open trackers of a run; on ranks other than the first there are none."""

    def __init__(
        self, names: Sequence[str], folder: Path, settings: Mapping[str, Any], step: int,
        progress: Progress,
    ) -> None:  # fmt: skip
        self._progress = progress
        self._open = {name: _opened(name, folder, settings, step) for name in names}

    def log(self, row: Mapping[str, Any], step: int) -> None:
        """Hand on the numbers of a row; text and nested values are left out."""
        numbers = {
            name: float(value)
            for name, value in row.items()
            if isinstance(value, int | float) and not isinstance(value, bool) and name != "step"
        }
        for name, (log, _) in list(self._open.items()):
            self._try(name, lambda log=log: log(numbers, step))  # type: ignore[misc]

    def close(self) -> None:
        for name, (_, close) in list(self._open.items()):
            self._try(name, close)
        self._open = {}

    def _try(self, name: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # whatever a tracker does, the run goes on
            del self._open[name]
            self._progress.line(
                f"tracker {name} failed and gets nothing more: {type(error).__name__}: {error}; "
                "metrics.jsonl has all"
            )


def _opened(name: str, folder: Path, settings: Mapping[str, Any], step: int) -> tuple[Log, Close]:
    try:
        return OPENERS[name](folder, settings, step)
    except ImportError as error:
        raise ConfigError(
            f"key `trackers`: {name} is not installed ({error}); `pip install {name}`, or take it "
            "out of run.yaml"
        ) from None
