"""The scores of a checkpoint of a run: those that stand, or new ones, made in one process.

Scores stand for a step of this run and for held-out documents, known by their content hashes.
While these are the same, nothing is computed and torch is not imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from mixtures.heldout import HeldoutSet
from mixtures.plan import plan_from_dict
from pipeline.config import ConfigError, check
from pipeline.files import read_json
from trainer import saved
from trainer.items import heldout_sets, tokenize
from trainer.metrics import Progress
from trainer.scores import keep_scores, kept_scores
from trainer.settings import RunSettings


@dataclass(frozen=True)
class Scored:
    checkpoint: Path
    table: pa.Table  # rows of EVALUATIONS
    news: str  # why it was scored now; empty: its scores stood


def scores_of_run(folder: Path, name: str | None, progress: Progress) -> Scored:
    """The scores of checkpoint `name` (None: the newest) of the run in `folder`; new ones are kept
    in its evaluations.parquet.

    Raises:
        ConfigError: no run, no such checkpoint, or a damaged one.
    """
    if not (folder / "run.json").exists():
        raise ConfigError(f"{folder} holds no run (no run.json); train one with `assay train`")
    settings = read_json(folder / "run.json")["settings"]
    run = check(settings, RunSettings, str(folder / "run.json"))
    path = _checkpoint(folder / "checkpoints", name)
    step = saved.manifest(path)["step"]
    sets = heldout_sets(run)
    table = kept_scores(folder / "evaluations.parquet", step)
    news = _news(table, sets) if len(table) else f"step {step} has no scores yet"
    if news:
        progress.line(f"{news}; scoring")
        table = _score(folder, run, path, step, sets)
        keep_scores(folder / "evaluations.parquet", table)
    return Scored(path, table, news)


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


def _news(table: pa.Table, sets: Sequence[HeldoutSet]) -> str:
    """Which sets are not those that the scores of `table` are of; empty when all are."""
    columns = [table[column].to_pylist() for column in ("set", "language", "source")]
    scored = set(zip(*columns, map(bytes.hex, table["content_hash"].to_pylist()), strict=True))
    present = {(s.name, s.language, s.source, hash_) for s in sets for hash_, _ in s.documents}
    names = sorted({name for name, *_ in scored ^ present})
    return f"new held-out sets: {', '.join(names)}" if names else ""


def _score(
    folder: Path, run: RunSettings, path: Path, step: int, sets: Sequence[HeldoutSet]
) -> pa.Table:
    import torch

    from trainer import checkpoint
    from trainer.evaluate import score, scores_of
    from trainer.model import Decoder
    from trainer.parallel import World
    from trainer.step import precision

    plan = plan_from_dict(read_json(folder / "plan.json"))
    world = World(0, 1, torch.device("cuda" if torch.cuda.is_available() else "cpu"), None)
    model = Decoder(run.model.shape, plan.vocab_size)
    checkpoint.load_weights(path, model)
    model.to(world.device)
    items = tokenize(sets, Path(plan.tokenizer_file), plan.bos_id)
    with precision(run, world):
        nats = score(model, items, plan.sequence_length, run.micro_batch, world)
    return scores_of(items, step, nats)
