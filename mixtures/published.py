"""A plan and its packed windows where other machines can read them: `assay mix --publish PLACE`.

    plan.json                                  the plan, sealed; folders are relative to it
    tokenizer.json
    packed/<selection>/part-00000.arrow ...    windows
    packed/<selection>/manifest.json           hashes of these files

PLACE is a folder or a URL. What is published can be copied as it is: to a web server, to a data set
of Hugging Face. Manifests come after their files and the plan comes last, so a plan that is there
is whole. A second call uploads what is missing or has changed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixtures.packed import require_whole
from mixtures.plan import Plan, plan_from_dict
from pipeline import objects
from pipeline.config import ConfigError
from pipeline.files import unsealed, write_sealed

PLAN, TOKENIZER = "plan.json", "tokenizer.json"
UPLOADS = 4  # at a time


def publish(plan: Plan, place: str) -> Iterator[str]:
    """Upload a plan and what it reads; yields lines to tell.

    Raises:
        ValueError: packed windows here are damaged; nothing of them is uploaded.
        OSError: the store refuses.
    """
    place = place.rstrip("/")
    for source in plan.sources:
        sent, num_bytes = _upload_folder(
            Path(source.folder), f"{place}/{_folder(source.selection)}"
        )
        yield f"{source.name}: {sent} files sent, {num_bytes:,} bytes"
    objects.upload(Path(plan.tokenizer_file), f"{place}/{TOKENIZER}")
    sources = tuple(replace(s, folder=_folder(s.selection)) for s in plan.sources)
    moved = replace(plan, sources=sources, tokenizer_file=TOKENIZER)
    objects.write(f"{place}/{PLAN}", _sealed(moved.to_dict()))
    yield f"published: {place}/{PLAN}"
    yield (
        f"a reader's cache holds what is shuffled as one, and what comes next: "
        f"{_working_set(plan):,} bytes; less, and parts are fetched more than once (`shuffle` of "
        "the mixture makes it smaller)"
    )


def open_plan(place: str | Path) -> Plan:
    """A plan that was published, with its folders where they are.

    Raises:
        ConfigError: there is none, or it is damaged.
    """
    base = str(place).rstrip("/").removesuffix(f"/{PLAN}")
    where = f"{base}/{PLAN}"
    found = None
    with suppress(FileNotFoundError):
        found = unsealed(objects.read(where), strict=True)
    if found is None:
        raise ConfigError(
            f"{where} is missing, or not as it was written; `assay mix mixture.yaml --tokens N "
            f"--publish {base}` writes it"
        )
    plan = plan_from_dict(found)
    sources = tuple(replace(s, folder=f"{base}/{s.folder}") for s in plan.sources)
    return replace(plan, sources=sources, tokenizer_file=f"{base}/{plan.tokenizer_file}")


def _working_set(plan: Plan) -> int:
    """Bytes of two groups of each source, or of all of it."""
    total = 0
    for source in plan.sources:
        files = require_whole(Path(source.folder), hashes=False)["files"]
        sizes = [file["bytes"] for name, file in files.items() if name.startswith("part-")]
        total += max(sizes) * min(2 * source.parts_per_group, len(sizes))
    return total


def _folder(selection: str) -> str:
    return f"packed/{selection}"


def _upload_folder(folder: Path, place: str) -> tuple[int, int]:
    """Upload what is not there; the number of files that were sent, and their bytes."""
    manifest = require_whole(folder)
    before: dict[str, Any] = {}
    with suppress(FileNotFoundError):
        before = unsealed(objects.read(f"{place}/manifest.json"), strict=True) or {}
    missing = [
        (name, known["bytes"])
        for name, known in manifest["files"].items()
        if not _stands(f"{place}/{name}", known, before.get("files", {}).get(name, known))
    ]
    with ThreadPoolExecutor(UPLOADS) as pool:
        list(pool.map(lambda file: objects.upload(folder / file[0], f"{place}/{file[0]}"), missing))
    objects.write(f"{place}/manifest.json", (folder / "manifest.json").read_bytes())
    return len(missing), sum(num_bytes for _, num_bytes in missing)


def _stands(url: str, known: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether an object has the size that it should, and no other hash was told of it before."""
    if known["xxh3"] != before["xxh3"]:
        return False
    try:
        return bool(objects.info(url)["size"] == known["bytes"])
    except FileNotFoundError:
        return False


def _sealed(value: dict[str, Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_sealed(Path(folder, PLAN), value)
        return Path(folder, PLAN).read_bytes()
