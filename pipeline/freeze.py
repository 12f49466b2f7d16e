"""All that a corpus is and was made from, as one value; and where another differs from it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernels.han import SIMPLIFIED
from pipeline import store
from pipeline.config import check
from pipeline.corpus import CorpusError, manifest
from pipeline.digests import table_digests
from pipeline.files import file_hash, read_json, read_sealed
from pipeline.fingerprint import code, versions
from pipeline.finished import home
from pipeline.groups import editors, groups
from pipeline.settings import CorpusSettings
from pipeline.staleness import FILTERS, TRANSFORMS

FROZEN_VERSION = 1
CODE = sorted(path.stem for path in Path(__file__).with_name("transforms").glob("[!_]*.py"))
# What two corpora must share to be the same; the rest of a frozen file says why they are not.
MUST_AGREE = ("inputs", "tokenizer", "heldout", "tables")
OTHER_VERSION = "install the versions that the frozen file names, or freeze anew"
REMEDIES = {
    "inputs": "put the files back; or take them as they are: `assay prepare --refresh`, and freeze "
    "anew",
    "tokenizer": "name the former tokenizer in corpus.yaml and call `assay prepare`",
    "heldout": "put heldout.json and heldout/ back: every comparison rests on them",
    "tables": "`assay prepare --verify` finds damaged files and makes them again; where it finds "
    "none, what differs above or below explains it",
    "settings": "put the former value back into the settings file, or freeze anew",
    "lists_and_models": OTHER_VERSION,
    "versions": OTHER_VERSION,
    "code": OTHER_VERSION,
    "packed": "put the former settings and corpora back, or freeze the mixture anew",
}


def frozen_corpus(root: Path) -> dict[str, Any]:
    """All that the corpus at `root` is and was made from; reads every table once.

    Raises:
        CorpusError: not a finished corpus.
    """
    found = manifest(root)
    settings = check(found["settings"], CorpusSettings, str(root / "corpus.json"))
    inputs = read_json(root / "inputs.json")["files"]
    tokenizer = root / "tokens" / found["tokenizer"]["hash"] / "tokenizer.json"
    files = [group.files for group in groups(settings).values()]
    files += [editor.files for editor in editors(settings).values()]
    models = [FILTERS / name for names in files for name in names]
    return {
        "name": found["name"],
        "folder": store.place(home(root)),
        "format": found["format"],
        "settings": {k: v for k, v in found["settings"].items() if k != "output"},
        "inputs": {f"{f['source']}/{f['file']}": f"{f['bytes']} {f['hash']}" for f in inputs},
        "tokenizer": {"hash": found["tokenizer"]["hash"], "file": file_hash(tokenizer)},
        "lists_and_models": {path.name: file_hash(path) for path in sorted({*models, SIMPLIFIED})},
        "versions": _versions(),
        "code": {module: code(f"{TRANSFORMS}.{module}") for module in CODE},
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
    """(section, `key: expected, found`) of everything that differs, what must agree first."""
    others = [section for section in before if section not in (*MUST_AGREE, "folder", "name")]
    sections = [section for section in (*MUST_AGREE, *others) if section in before]
    return [
        (section, line)
        for section in sections
        for line in differing("", _said(section, before), _said(section, now))
    ]


def _said(section: str, frozen: dict[str, Any]) -> Any:
    found: Any = frozen.get(section)
    return {name: _state(s) for name, s in found.items()} if section == "inputs" else found


def _state(stored: str) -> str:
    """Of an input file, as `inputs` keeps it: size and hash."""
    num_bytes, _, digest = stored.partition(" ")
    return f"{int(num_bytes):,} bytes with hash {digest}"


def differing(key: str, before: Any, now: Any) -> Iterator[str]:
    """`key: expected ..., found ...` of each leaf that differs; mappings and lists of mappings
    (`inputs`, by their source) are looked into."""
    before, now = _named(before), _named(now)
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            inner = f"{key}.{name}" if key else name
            yield from differing(inner, before.get(name), now.get(name))
    elif before != now:
        yield f"{key}: expected {_short(before)}, found {_short(now)}"


def _named(value: Any) -> Any:
    """A list of mappings as a mapping: by their `source`, or by place."""
    if not isinstance(value, list) or not any(isinstance(item, dict) for item in value):
        return value
    return {str(item.get("source", place)): item for place, item in enumerate(value)}


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def changed_inputs(frozen: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Input files of a frozen corpus whose bytes are others now, or that came in since; and those
    that are not here any more. Reads every one.

    Raises:
        ConfigError: its settings cannot be used any more.
    """
    from pipeline.inputs import files_of
    from pipeline.readers.files import content_hash, file_size

    settings = check(frozen["settings"], CorpusSettings, "frozen settings")
    now: dict[str, tuple[str, str]] = {}
    for item in settings.inputs:
        with contextlib.suppress(OSError, ValueError):  # nothing matches any more: all are gone
            for path, file in files_of(item, settings.output)[0]:
                state = _state(f"{file_size(path)} {content_hash(path)}")
                now[f"{item.source}/{file}"] = path, state
    before = _said("inputs", frozen)
    changed = [
        f"{name} ({path}): expected {before.get(name, 'nothing')}, found {found}"
        for name, (path, found) in sorted(now.items())
        if before.get(name) != found
    ]
    gone = [f"{name}: expected {before[name]}, found no file" for name in before if name not in now]
    return changed, gone


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
