"""Trackers of others: what they are told, and that none of them ends a run."""

from __future__ import annotations

import io
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from pipeline.config import ConfigError
from trainer.metrics import Progress
from trainer.sinks import OPENERS, Sinks

ROW = {"step": 3, "tokens": 30, "loss": 1.5, "note": "text", "held": {"en": 1.0}, "whole": True}


class Tracker:
    """Looks like wandb and trackio."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.broken = False

    def init(self, **options: Any) -> Tracker:
        self.told.append(("init", options["project"], options["name"], options["resume"]))
        return self

    def log(self, numbers: dict[str, float], step: int) -> None:
        if self.broken:
            raise ConnectionError("no route")
        self.told.append((step, numbers))

    def finish(self) -> None:
        self.told.append("finish")


@pytest.fixture
def tracker(monkeypatch: pytest.MonkeyPatch) -> Tracker:
    made = Tracker()
    for name in ("wandb", "trackio"):
        module = types.ModuleType(name)
        for part in ("init", "log", "finish"):
            setattr(module, part, getattr(made, part))
        monkeypatch.setitem(sys.modules, name, module)
    return made


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_numbers_and_steps_are_handed_on(name: str, tracker: Tracker, tmp_path: Path) -> None:
    sinks = Sinks([name], tmp_path / "small", {}, 0, Progress(io.StringIO()))
    sinks.log(ROW, 3)
    sinks.close()
    numbers = {"tokens": 30.0, "loss": 1.5}
    assert tracker.told == [("init", "assay", "small", "allow"), (3, numbers), "finish"]


def test_a_tracker_that_fails_is_told_once_and_left(tracker: Tracker, tmp_path: Path) -> None:
    stream = io.StringIO()
    sinks = Sinks(["wandb"], tmp_path, {}, 0, Progress(stream))
    tracker.broken = True
    for step in (1, 2, 3):
        sinks.log(ROW, step)
    sinks.close()
    assert stream.getvalue() == (
        "tracker wandb failed and gets nothing more: ConnectionError: no route; metrics.jsonl has "
        "all\n"
    )
    assert tracker.told[1:] == []


@pytest.mark.parametrize("name", OPENERS)
def test_one_that_is_not_installed_is_a_mistake(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (name, "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=f"key `trackers`: {name} is not installed"):
        Sinks([name], tmp_path, {}, 0, Progress(io.StringIO()))


def test_tensorboard_holds_the_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sinks = Sinks(["tensorboard"], tmp_path, {}, 0, Progress(io.StringIO()))
    for step in (1, 2):
        sinks.log({**ROW, "loss": step / 2}, step)
    sinks.close()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(1, 0.5), (2, 1.0)]
