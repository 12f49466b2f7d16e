"""run.json: what a run is, and whether the folder's earlier run may be skipped or resumed."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from pathlib import Path
from typing import Any

from mixtures.plan import Plan
from pipeline.config import ConfigError
from pipeline.files import read_json
from trainer.settings import RunSettings, changed_key

REMEDY = "give another `output`, or start over with --fresh"


def new_record(run: RunSettings, plan: Plan, num_processes: int, device: str) -> dict[str, Any]:
    """The record of a run that begins."""
    return {
        "settings": run.model_dump(mode="json"),
        "fingerprints": {"plan": plan.fingerprint, "tokenizer": plan.tokenizer},
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


def earlier_record(folder: Path, record: dict[str, Any]) -> dict[str, Any] | None:
    """run.json of the run that the folder holds, None when it holds none.

    Raises:
        ConfigError: it is a run of other settings, tokenizer or data; the key is named.
    """
    path = folder / "run.json"
    if not path.exists():
        return None
    earlier: dict[str, Any] = read_json(path)
    key = changed_key(earlier["settings"], record["settings"])
    if key is not None:
        before, now = (_value(found["settings"], key) for found in (earlier, record))
        raise ConfigError(
            f"{folder} holds a run with `{key}: {before}`, these settings say {now}, which would "
            f"change its loss; {REMEDY}"
        )
    for name, meaning in (("tokenizer", "tokenizer"), ("plan", "data (the plan of its mixture)")):
        before, now = (found["fingerprints"][name] for found in (earlier, record))
        if before != now:
            raise ConfigError(
                f"key `mixture`: {folder} holds a run on another {meaning}: {before}, now {now}; "
                f"{REMEDY}"
            )
    return earlier


def remove_run(folder: Path) -> None:
    """Delete what `train` writes into a folder, and nothing else."""
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    for name in ("run.json", "plan.json", "metrics.jsonl", "evaluations.parquet"):
        (folder / name).unlink(missing_ok=True)


def _value(settings: dict[str, Any], key: str) -> Any:
    value: Any = settings
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
