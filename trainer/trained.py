"""The model of a checkpoint of a run, in one process, ready to be asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mixtures.plan import Plan, plan_from_dict
from pipeline.config import ConfigError, check
from pipeline.files import read_json
from trainer import saved
from trainer.settings import RunSettings

if TYPE_CHECKING:  # torch is loaded when a model is asked for, not before
    from trainer.model import Decoder
    from trainer.parallel.world import World


@dataclass(frozen=True)
class Trained:
    """A run and one of its checkpoints; the model is loaded when it is first asked for."""

    folder: Path
    checkpoint: Path
    run: RunSettings

    @property
    def step(self) -> int:
        return int(saved.manifest(self.checkpoint)["step"])

    @cached_property
    def plan(self) -> Plan:
        return plan_from_dict(read_json(self.folder / "plan.json"))

    @cached_property
    def world(self) -> World:
        import torch

        from trainer.parallel.world import World

        return World(0, 1, torch.device("cuda" if torch.cuda.is_available() else "cpu"), None)

    @cached_property
    def model(self) -> Decoder:
        """With the weights of the checkpoint, on the device."""
        from trainer import checkpoint
        from trainer.encoder_decoder import make_model

        model = make_model(self.run.model.shape, self.plan.vocab_size)
        checkpoint.load_weights(self.checkpoint, model)
        return model.to(self.world.device)


def run_of(folder: Path) -> RunSettings:
    """The settings of the run in `folder`, paths absolute.

    Raises:
        ConfigError: it holds none.
    """
    if not (folder / "run.json").exists():
        raise ConfigError(f"{folder} holds no run (no run.json); train one with `assay train`")
    settings = read_json(folder / "run.json")["settings"]
    return check(settings, RunSettings, str(folder / "run.json"))


def trained(folder: Path, name: str | None = None) -> Trained:
    """Checkpoint `name` (None: the newest whole one) of the run in `folder`.

    Raises:
        ConfigError: no run, no such checkpoint, or a damaged one.
    """
    run = run_of(folder)
    return Trained(folder, _checkpoint(folder / "checkpoints", name), run)


def _checkpoint(folder: Path, name: str | None) -> Path:
    if name is None:
        newest = saved.newest(folder)
        if newest is None:
            raise ConfigError(f"{folder} holds no complete checkpoint; call `assay train` again")
        return newest
    damage = saved.damage(folder / name)
    if damage is not None:
        known = ", ".join(path.name for path in sorted(folder.glob("step-*")))
        raise ConfigError(f"{damage}; checkpoints here: {known or 'none'}")
    return folder / name
