"""`assay train` and `assay evaluate`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
import yaml

from mixtures.plan import plan_from_dict
from pipeline.config import ConfigError, check
from pipeline.files import read_json
from trainer import checkpoint, loop
from trainer.evaluate import bits_per_byte, keep_scores, score, scores_of
from trainer.items import heldout_items
from trainer.metrics import Progress
from trainer.model import Decoder
from trainer.parallel import World
from trainer.settings import RunSettings, load_run
from trainer.step import precision

TRAIN_HELP = """\
example:
  assay train run.yaml --set tokens=500k --set model=1M

  run.yaml:
    mixture: mixture.yaml
    model: 0.4M
    tokens: 2M
    batch_tokens: 16k

A finished run is not run again; an unfinished one goes on. Several processes:
  torchrun --standalone --nproc-per-node 8 -m trainer.cli train run.yaml"""

EVALUATE_HELP = """\
example:
  assay evaluate runs/small --by language"""


def train(argv: list[str]) -> int:
    """Train a model on a mixture."""
    parser = argparse.ArgumentParser(
        "assay train",
        description=train.__doc__,
        epilog=TRAIN_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("settings", metavar="run.yaml")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another value for a key of run.yaml, dotted: schedule.decay=0.1",
    )
    parser.add_argument("--fresh", action="store_true", help="forget what `output` holds")
    options = parser.parse_args(argv)
    run = load_run(options.settings, dict(_change(item) for item in options.set))
    loop.train(run, progress=Progress(), fresh=options.fresh)
    return 0


def _change(item: str) -> tuple[str, Any]:
    key, equals, value = item.partition("=")
    if not equals:
        raise ConfigError(f"--set {item}: expected KEY=VALUE, for instance --set tokens=500k")
    return key, yaml.safe_load(value)


def evaluate(argv: list[str]) -> int:
    """Bits per byte of the held-out sets for a checkpoint of a run, on one process."""
    parser = argparse.ArgumentParser(
        "assay evaluate",
        description=evaluate.__doc__,
        epilog=EVALUATE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("--checkpoint", metavar="NAME", help="step-00000120; default: the newest")
    parser.add_argument("--by", choices=["set", "language", "source"], default="set")
    options = parser.parse_args(argv)
    folder = Path(options.run)
    if not (folder / "run.json").exists():
        raise ConfigError(f"{folder} holds no run (no run.json); train one with `assay train`")
    record = read_json(folder / "run.json")
    run = check(record["settings"], RunSettings, str(folder / "run.json"))
    plan = plan_from_dict(read_json(folder / "plan.json"))
    path = _checkpoint(folder / "checkpoints", options.checkpoint)

    world = World(0, 1, torch.device("cuda" if torch.cuda.is_available() else "cpu"), None)
    model = Decoder(run.model, plan.vocab_size)
    checkpoint.load_weights(path, model)
    model.to(world.device)
    items = heldout_items(plan, run)
    with precision(run, world):
        nats = score(model, items, plan.sequence_length, run.micro_batch, world)
    table = scores_of(items, checkpoint.manifest(path)["step"], nats)
    keep_scores(folder / "evaluations.parquet", table)
    for name, value in bits_per_byte(table, options.by).items():
        print(f"{value:.4f}  {name}")
    print(f"bits per byte of {path}; by document: {folder / 'evaluations.parquet'}")
    return 0


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
