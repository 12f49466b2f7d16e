"""A run that begins at a checkpoint of another: `branch: {from: RUN, at: step-400, decay: 2M}`.

"Decay from step k": the stable part of a run is trained once, and what its end would be, with which
data and over how many tokens, is asked of branches (MiniCPM 2404.06395; Hägele 2405.18392). A
branch has a folder of its own and writes nothing into its parent's. Its settings are the parent's
where run.yaml says nothing else, its data goes on where the parent was, its steps count on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixtures.plan import Plan, plan_from_dict
from pipeline.config import ConfigError, check
from pipeline.files import read_json
from trainer import saved
from trainer.batches import ramp_windows, steps
from trainer.recipe import Branch
from trainer.schedule import learning_rate
from trainer.settings import RunSettings

OWN = ("output", "branch", "tokens", "initial")  # keys of the parent that a branch does not take


def written_out(raw: dict[str, Any], path: Path, output: Path) -> dict[str, Any]:
    """The keys of a run.yaml with a branch, with those of its parent under them.

    Args:
        raw: what was read from `path`.
        output: folder of the branch; once it holds a record, the parent's checkpoint may be gone.

    Raises:
        ConfigError: no such run or checkpoint, or one that this run cannot begin at.
    """
    base = path.resolve().parent
    asked = check(raw["branch"], Branch, f"{path}: branch")
    if "tokens" in raw:
        raise ConfigError(
            f"{path}: a branch is as long as `branch.decay` says, {asked.decay:,} tokens after its "
            "checkpoint; take `tokens` out"
        )
    folder = base / asked.parent
    if not (folder / "run.json").exists():
        raise ConfigError(f"{path}: branch.from: {folder} holds no run (no run.json)")
    inherited = read_json(folder / "run.json")["settings"]
    parent = check(inherited, RunSettings, str(folder / "run.json"))
    name = saved.name(_number(asked.at, folder))
    begin, share = _known(output, folder, name) or _begin(parent, folder, name)
    merged = {**{k: v for k, v in inherited.items() if k not in OWN}, **raw}
    merged["mixture"] = str(base / raw["mixture"]) if "mixture" in raw else parent.mixture
    if "checkpoint" in raw:
        merged["checkpoint"] = {**inherited.get("checkpoint", {}), **raw["checkpoint"]}
    if "batch_tokens" in raw:
        merged["batch_tokens"] = _then(parent.batch_tokens, begin, raw["batch_tokens"])
    merged["tokens"] = begin + asked.decay
    merged["branch"] = {
        "from": str(folder),
        "at": name,
        "decay": asked.decay,
        "begin": begin,
        "share": share,
    }
    return merged


def _begin(parent: RunSettings, folder: Path, name: str) -> tuple[int, float]:
    """Tokens of a checkpoint of the parent, and the share of its learning rate there."""
    path = folder / "checkpoints" / name
    if not (path / saved.MANIFEST).exists():
        raise ConfigError(
            f"branch.at: {path} does not exist; there are {_others(folder)} "
            "(`checkpoint.keep_every` of a run keeps some for good)"
        )
    plan = plan_from_dict(read_json(folder / "plan.json"))
    position = int(saved.manifest(path)["data"]["position"])
    if position == plan.num_windows and _is_cut_short(parent, plan):
        raise ConfigError(
            f"branch.at: {name} is the end of its run, whose last batch was cut short; begin at an "
            f"earlier one: {_others(folder)}"
        )
    begin, total = (windows * plan.sequence_length for windows in (position, plan.num_windows))
    return begin, learning_rate(parent.schedule, 1.0, begin, total, parent.branch)


def _known(output: Path, folder: Path, name: str) -> tuple[int, float] | None:
    """What the record of the branch says of its beginning, if it is of this checkpoint."""
    if not (output / "run.json").exists():
        return None
    known = read_json(output / "run.json")["settings"].get("branch") or {}
    if (known.get("from"), known.get("at")) != (str(folder), name):
        return None
    return known["begin"], known["share"]


def checkpoint_of(branch: Branch) -> Path:
    """The parent's checkpoint.

    Raises:
        ConfigError: it is damaged.
    """
    path = Path(branch.parent) / "checkpoints" / branch.at
    damage = saved.damage(path)
    if damage is not None:
        raise ConfigError(f"branch.at: {damage}; begin at another: {_others(Path(branch.parent))}")
    return path


def origin(branch: Branch) -> dict[str, Any]:
    """What the record of a branch says of its parent."""
    folder = Path(branch.parent)
    begin, share = branch.resolved
    return {
        "run": str(folder),
        "checkpoint": branch.at,
        "tokens": begin,
        "share_of_learning_rate": share,
        "plan": read_json(folder / "plan.json")["fingerprint"],
        "files": saved.manifest(folder / "checkpoints" / branch.at)["files"],
    }


def _number(at: str, folder: Path) -> int:
    number = at.removeprefix("step-")
    if not number.isdigit():
        raise ConfigError(
            f"branch.at: {at!r} names no checkpoint, as `step-400` does; there are "
            f"{_others(folder)}"
        )
    return int(number)


def _others(folder: Path) -> str:
    return ", ".join(p.name for p in saved.newest_first(folder / "checkpoints")) or "none"


def _is_cut_short(run: RunSettings, plan: Plan) -> bool:
    """Whether the last step of a run holds less than a batch."""
    last = steps(run.batch_tokens, plan)[-1]
    return last.windows < ramp_windows(run.batch_tokens, plan.sequence_length)[-1][1]


def _then(before: Any, begin: int, batch: Any) -> list[Any]:
    """The parent's batch up to `begin`, then another: so steps count on."""
    ramp = [[0, before]] if isinstance(before, int) else [list(entry) for entry in before]
    if not isinstance(batch, int | str):
        raise ConfigError(
            f"`batch_tokens: {batch}`: of a branch it is one number, which holds from its "
            "checkpoint on"
        )
    return [*(entry for entry in ramp if entry[0] < begin), [begin, batch]]
