"""run.json: what a run is, and whether the folder's earlier run may be skipped or resumed.

Imports no torch, so that a finished run says so in half of the time.
"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixtures.continuing import why_not
from mixtures.plan import Plan, plan_from_dict
from pipeline.amounts import counted
from pipeline.clock import clock
from pipeline.config import ConfigError, check
from pipeline.files import read_json, write_json
from trainer import branch, saved, skipped
from trainer.data import planned
from trainer.settings import RunSettings, changed_key

# What `train` and `evaluate` write into the folder of a run.
FOLDERS = ("checkpoints", "plans", "evaluating", "profile", "tensorboard")
FILES = (
    "run.json", "plan.json", "metrics.jsonl", "evaluations.parquet", "answers.parquet",
    skipped.FILE,
)  # fmt: skip
REMEDY = "give another `output`, or start over with --fresh"


@dataclass(frozen=True)
class RunResult:
    """What a run came to."""

    folder: Path
    skipped: bool  # it had finished before
    steps: int
    tokens: int
    loss: float  # of the last step, nats per token
    seconds: float  # of all steps
    bits_per_byte: dict[str, float]  # of each held-out set at the end

    def told(self) -> str:
        """The result, and where the scores are."""
        done = "had finished before" if self.skipped else f"took {clock(self.seconds)}"
        return (
            f"{self.folder}: {self.tokens:,} tokens in {counted(self.steps, 'step')} {done}; "
            f"last loss {self.loss:.4f} nats per token\n"
            f"bits per byte by set: assay evaluate {self.folder}; "
            f"by document: {self.folder / 'evaluations.parquet'}"
        )


def finished_before(run: RunSettings) -> RunResult | None:
    """What the run that `output` holds came to, None when it holds none or an unfinished one.

    Raises:
        ConfigError: it is a finished run of other settings, tokenizer or data; the key is named.
    """
    folder = _folder(run)
    path = folder / "run.json"
    if not path.exists():
        return None
    record = read_json(path)
    if record["status"] != "finished":
        return None
    refuse_other_run(run, planned(run, pack=False))
    return RunResult(folder, True, **record["totals"])


def new_record(run: RunSettings, plan: Plan, num_processes: int, device: str) -> dict[str, Any]:
    """The record of a run that begins."""
    return {
        **({"origin": _origin(run)} if run.branch else {}),
        "settings": run.model_dump(mode="json"),
        "fingerprints": _fingerprints(plan),
        "vocab_size": plan.vocab_size,
        "sequence_length": plan.sequence_length,
        "versions": {
            "assay": importlib.metadata.version("assay"),
            "torch": importlib.metadata.version("torch"),
            "python": platform.python_version(),
        },
        "processes": num_processes,
        "device": device,
    }


def _origin(run: RunSettings) -> dict[str, Any]:
    """What a branch began from; as it was then, once the run has a record."""
    assert run.branch is not None
    path = _folder(run) / "run.json"
    if path.exists():
        found: dict[str, Any] = read_json(path)["origin"]
        return found
    return branch.origin(run.branch)


def refuse_other_run(run: RunSettings, plan: Plan) -> None:
    """Do nothing when `output` holds no run, or one that this one goes on with.

    Raises:
        ConfigError: it holds a run of other settings, tokenizer or data; the key is named.
    """
    folder = _folder(run)
    if not (folder / "run.json").exists():
        return
    earlier = read_json(folder / "run.json")
    settings = run.model_dump(mode="json")
    held = check(earlier["settings"], RunSettings, str(folder / "run.json"))  # with newer keys
    earlier_settings = held.model_dump(mode="json")
    key = changed_key(earlier_settings, settings)
    if key is not None:
        before, now = (_value(found, key) for found in (earlier_settings, settings))
        raise ConfigError(
            f"{folder} holds a run with `{key}: {before}`, these settings say {now}, which would "
            f"change its loss; {REMEDY}"
        )
    before, now = earlier["fingerprints"]["tokenizer"], plan.tokenizer
    if before != now:
        raise ConfigError(
            f"key `mixture`: {folder} holds a run on another tokenizer: {before}, now {now}; "
            f"{REMEDY}"
        )
    before, now = earlier["fingerprints"]["plan"], plan.fingerprint
    why = None if before == now else _why_not(folder, earlier["status"], plan)
    if why is not None:
        raise ConfigError(
            f"key `mixture`: {folder} holds a run on another data (the plan of its mixture: "
            f"{before}, now {now}): {why}; or {REMEDY}"
        )


def _why_not(folder: Path, status: str, plan: Plan) -> str | None:
    """Why the run of a folder cannot go on with a plan that is not its own; None: it can."""
    if status == "finished":
        before = plan_from_dict(read_json(folder / "plan.json"))
        return why_not(before, plan, before.num_windows)
    checkpoint = saved.newest(folder / "checkpoints")
    if checkpoint is None:
        return "it has no checkpoint to go on from; restore its mixture"
    state = saved.manifest(checkpoint)["data"]
    found = plan_of(folder, state["fingerprint"])
    if found is None:
        return f"the plan of its {checkpoint.name} is not in {folder}; restore its mixture"
    return why_not(found, plan, state["position"])


# --- plans ----------------------------------------------------------------------------------------


def plan_of(folder: Path, fingerprint: str) -> Plan | None:
    """The plan of this fingerprint, that of a run or one that it went on from."""
    for path in (folder / "plan.json", folder / "plans" / f"{fingerprint}.json"):
        if path.exists():
            plan = plan_from_dict(read_json(path))
            if plan.fingerprint == fingerprint:
                return plan
    return None


def keep_plan(folder: Path, plan: Plan) -> None:
    """Write plan.json. What it was before the mixture changed is kept in plans/: the checkpoints
    that stand are of it."""
    path = folder / "plan.json"
    if path.exists():
        before = read_json(path)
        if before["fingerprint"] != plan.fingerprint:
            (folder / "plans").mkdir(exist_ok=True)
            write_json(folder / "plans" / f"{before['fingerprint']}.json", before)
    write_json(path, plan.to_dict())


def remove_run(folder: Path) -> None:
    """Delete what `train` writes into a folder, and nothing else."""
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


def _folder(run: RunSettings) -> Path:
    assert run.output is not None, "load_run gives every run a folder"
    return Path(run.output)


def _fingerprints(plan: Plan) -> dict[str, str]:
    return {"plan": plan.fingerprint, "tokenizer": plan.tokenizer}


def _value(settings: dict[str, Any], key: str) -> Any:
    value: Any = settings
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
