"""What `prepare` kept of a corpus so that near copies are found: its files, whole, and whether
those of several corpora go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.commits import record_path
from pipeline.config import ConfigError
from pipeline.corpus import fetched, manifest
from pipeline.dedup_settings import Near
from pipeline.files import part_name, part_number, read_sealed
from pipeline.finished import home
from pipeline.transforms import contained, near
from pipeline.whole import require_whole, vouched


def require_alike(roots: Sequence[Path]) -> dict[str, Any]:
    """The settings of `near` that these corpora share, all that near duplicates depend on.

    Raises:
        ConfigError: they do not, or were signed by different versions.
    """
    first = roots[0]
    settings: dict[str, Any] = dict(manifest(first)["settings"]["near"])
    settings.pop("containment", None)  # of another level: linked_contained.py
    for other in roots[1:]:
        theirs = manifest(other)["settings"]["near"]
        remedy = "prepare one of them again, or use `unique: exact`"
        for key in settings:
            if settings[key] != theirs[key]:
                raise ConfigError(
                    f"`unique: near` over {first} and {other}: `near: {{{key}}}` is "
                    f"{settings[key]} in one and {theirs[key]} in the other; {remedy}"
                )
        if _signed_as(first) != _signed_as(other):
            raise ConfigError(
                f"`unique: near` over {first} and {other}: signed by different versions of "
                "assay; call `assay prepare` for both again: it signs anew and no more"
            )
    return settings


def require_signed_now(root: Path) -> None:
    """Refuse a corpus whose band keys are not of this version: an index says what its own are by
    what this version makes of a probe.

    Raises:
        ConfigError: they are not.
    """
    from pipeline.staleness import signature_print  # loads readers and filters

    if _signed_as(root) != signature_print(Near(**manifest(root)["settings"]["near"])):
        raise ConfigError(
            f"{home(root)}: signed by another version of assay than this one, and an index goes "
            "by what this one makes; call `assay prepare` for it again: it signs anew and no more"
        )


def _signed_as(root: Path) -> str:
    return str(manifest(root)["stages"]["signatures"]["fingerprint"])


def outputs_of(root: Path, stage: str) -> list[dict[str, Any] | None]:
    """Size and hash of all files of a stage, part by part."""
    records = (read_sealed(record_path(root, stage, part)) for part in parts_of(root))
    return [record["outputs"] if record else None for record in records]


def parts_of(root: Path) -> list[int]:
    """Numbers of the parts of a corpus."""
    return sorted(map(part_number, (root / "stats" / "signatures").glob("part-*.json")))


def part_files(root: Path, part: int) -> list[Path]:
    """Band keys, sketches and documents of a part, whole."""
    signed = _whole(root, "signatures", part, near.sign_outputs(root, part)[:2])
    return [*signed, *_whole(root, "ingest", part, [root / "documents" / part_name(part)])]


def contained_files(root: Path, part: int) -> list[Path]:
    """Keys and sizes of what may be contained in what, and documents of a part, whole."""
    keys = _whole(root, "contained_keys", part, contained.key_outputs(root, part))
    return [*keys, *_whole(root, "ingest", part, [root / "documents" / part_name(part)])]


def copies_file(root: Path, part: int) -> Path:
    """By what its copies are told, of each document of a part, whole."""
    return _whole(root, "signatures", part, near.sign_outputs(root, part)[2:])[0]


def components_file(root: Path) -> Path:
    """Which documents of a corpus hang together, whole."""
    return _whole(root, "components", 0, [near.components_output(root)])[0]


def _whole(root: Path, stage: str, part: int, paths: list[Path]) -> list[Path]:
    known = vouched([record_path(root, stage, part)])
    for path in paths:
        name = str(path.relative_to(root))
        fetched(home(root), name)
        require_whole(home(root), name, known)
    return [home(root) / path.relative_to(root) for path in paths]
