"""All that a corpus is and was made from, as one value; and where another differs from it."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filters.signals import GROUPS
from pipeline import store
from pipeline.config import check
from pipeline.corpus import CorpusError, manifest
from pipeline.digests import table_digests
from pipeline.files import file_hash, read_json, read_sealed
from pipeline.fingerprint import code, versions
from pipeline.settings import CorpusSettings
from pipeline.staleness import FILTERS, SIMPLIFIED

FROZEN_VERSION = 1
# Modules of pipeline/transforms.
CODE = ("ingest", "sweep", "measure", "tokenize", "near", "near_join", "heldout")
# What two corpora must share to be the same; the rest of a frozen file says why they are not.
MUST_AGREE = ("inputs", "tokenizer", "heldout", "tables")


def frozen_corpus(root: Path) -> dict[str, Any]:
    """All that the corpus at `root` is and was made from; reads every table once.

    Raises:
        CorpusError: not a finished corpus.
    """
    found = manifest(root)
    settings = check(found["settings"], CorpusSettings, str(root / "corpus.json"))
    inputs = read_json(root / "inputs.json")["files"]
    tokenizer = root / "tokens" / found["tokenizer"]["hash"] / "tokenizer.json"
    models = [FILTERS / name for group in settings.signals for name in GROUPS[group].files]
    return {
        "name": found["name"],
        "folder": store.place(root),
        "format": found["format"],
        "settings": {k: v for k, v in found["settings"].items() if k != "output"},
        "inputs": {f"{f['source']}/{f['file']}": f"{f['bytes']} {f['hash']}" for f in inputs},
        "tokenizer": {"hash": found["tokenizer"]["hash"], "file": file_hash(tokenizer)},
        "lists_and_models": {path.name: file_hash(path) for path in sorted({*models, SIMPLIFIED})},
        "versions": _versions(),
        "code": {module: code(f"pipeline.transforms.{module}") for module in CODE},
        "stages": {stage: known["fingerprint"] for stage, known in found["stages"].items()},
        "heldout": read_sealed(root / "heldout.json"),
        "tables": table_digests(root),
    }


def _versions() -> dict[str, str]:
    """Of Python and of what this project needs, extras apart."""
    needed = importlib.metadata.requires("assay") or []
    names = [re.split(r"[^\w.-]", line)[0] for line in needed if "extra ==" not in line]
    python = {"python": platform.python_version(), "unicode": unicodedata.unidata_version}
    return {**python, "assay": importlib.metadata.version("assay"), **versions(sorted(names))}


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[tuple[str, str]]:
    """(section, `key: before, now`) of everything that differs, what must agree first."""
    others = [section for section in before if section not in (*MUST_AGREE, "folder", "name")]
    return [
        (section, line)
        for section in (*MUST_AGREE, *others)
        for line in _differing("", before[section], now[section])
    ]


def _differing(key: str, before: Any, now: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            inner = f"{key}.{name}" if key else name
            yield from _differing(inner, before.get(name), now.get(name))
    elif before != now:
        yield f"{key}: {_short(before)}, now {_short(now)}"


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def changed_inputs(frozen: dict[str, Any]) -> list[str]:
    """Input files of a frozen corpus that are no longer what they were, by their bytes.

    Raises:
        ConfigError: its settings cannot be used any more.
    """
    from pipeline.readers.files import file_size
    from pipeline.shards import content_hash, input_files

    settings = check(frozen["settings"], CorpusSettings, "frozen settings")
    now = {
        f"{source}/{file}": f"{file_size(path)} {content_hash(path)}"
        for (source, file), path in input_files(settings).items()
    }
    return list(_differing("", frozen["inputs"], now))


def check_version(found: Any, path: Path) -> dict[str, Any]:
    """A frozen file as read from `path`.

    Raises:
        CorpusError: it is none, or of another version.
    """
    if not isinstance(found, dict) or "frozen" not in found:
        raise CorpusError(f"{path}: not a frozen corpus or mixture; make one with `assay freeze`")
    if found["frozen"] != FROZEN_VERSION:
        raise CorpusError(
            f"{path}: frozen file of version {found['frozen']}, this version of assay reads "
            f"{FROZEN_VERSION}; verify it with the version of assay that it names under `versions`"
        )
    return found
