"""Score a checkpoint of a run on the held-out sets of its mixture, in one process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import torch

from mixtures.plan import plan_from_dict
from pipeline.config import ConfigError, check
from pipeline.files import read_json
from trainer import checkpoint
from trainer.evaluate import keep_scores, score, scores_of
from trainer.items import heldout_items
from trainer.model import Decoder
from trainer.parallel import World
from trainer.settings import RunSettings
from trainer.step import precision


def rescore(folder: Path, name: str | None) -> tuple[Path, pa.Table]:
    """The checkpoint `name` (None: the newest) of the run in `folder`, and its scores, as rows of
    EVALUATIONS; they are kept in the run's evaluations.parquet.

    Raises:
        ConfigError: no run, no such checkpoint, or a damaged one.
    """
    if not (folder / "run.json").exists():
        raise ConfigError(f"{folder} holds no run (no run.json); train one with `assay train`")
    settings = read_json(folder / "run.json")["settings"]
    run = check(settings, RunSettings, str(folder / "run.json"))
    plan = plan_from_dict(read_json(folder / "plan.json"))
    path = _checkpoint(folder / "checkpoints", name)

    world = World(0, 1, torch.device("cuda" if torch.cuda.is_available() else "cpu"), None)
    model = Decoder(run.model, plan.vocab_size)
    checkpoint.load_weights(path, model)
    model.to(world.device)
    items = heldout_items(plan, run)
    with precision(run, world):
        nats = score(model, items, plan.sequence_length, run.micro_batch, world)
    table = scores_of(items, checkpoint.manifest(path)["step"], nats)
    keep_scores(folder / "evaluations.parquet", table)
    return path, table


def _checkpoint(folder: Path, name: str | None) -> Path:
    if name is None:
        newest = checkpoint.newest(folder)
        if newest is None:
            raise ConfigError(f"{folder} holds no complete checkpoint; call `assay train` again")
        return newest
    damage = checkpoint.damage(folder / name)
    if damage is not None:
        known = ", ".join(path.name for path in sorted(folder.glob("step-*")))
        raise ConfigError(f"{damage}; checkpoints here: {known or 'none'}")
    return folder / name
