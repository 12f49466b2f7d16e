"""`assay checkpoint list | verify`: which checkpoints a run has, and whether they can be loaded."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from mixtures.commands import table
from pipeline.config import ConfigError, check
from pipeline.files import read_json
from trainer import mirror, saved
from trainer.settings import RunSettings

HELP = """\
example:
  assay checkpoint list runs/small
  assay checkpoint verify runs/small
  assay checkpoint verify runs/small/checkpoints/step-00000120

verify reads every file against its hash, and every tensor. Exit code: 0 all are whole, 2 one is
not, or there is none."""


def main(argv: list[str]) -> int:
    """The checkpoints of a run."""
    parser = argparse.ArgumentParser(
        "assay checkpoint",
        description=main.__doc__,
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["list", "verify"])
    parser.add_argument("place", metavar="RUN|DIR", help="folder of a run, or of one checkpoint")
    options = parser.parse_args(argv)
    place = Path(options.place)
    if options.what == "list":
        print("\n".join(_listed(place)))
        return 0
    wrong = 0
    for path in _checkpoints(place):
        damage = verify(path)
        wrong += damage is not None
        print(damage or f"{path}: whole, {_size(path):,} bytes, every tensor can be read")
    return 2 if wrong else 0


def verify(path: Path) -> str | None:
    """What is wrong with a checkpoint: hashes first, then its tensors; None: nothing."""
    damage = saved.damage(path)
    if damage is not None:
        return damage
    from trainer import checkpoint

    try:
        checkpoint.prove(path)
    except Exception as error:  # whatever torch says of it
        return f"{path}: its files are as they were written, and cannot be loaded: {error}"
    return None


def _checkpoints(place: Path) -> list[Path]:
    """Those of a run, newest first, or the one that `place` is.

    Raises:
        ConfigError: there is none.
    """
    if place.name.startswith("step-"):
        return [place]
    found = saved.newest_first(place / "checkpoints")
    if not found:
        raise ConfigError(f"{place} holds no checkpoint, nor is it one")
    return found


def _listed(place: Path) -> Iterator[str]:
    """A row a checkpoint, here or in the mirror; files are looked at, not read."""
    here = {path.name: path for path in saved.newest_first(place / "checkpoints")}
    there = _mirrored(place)
    newest = saved.latest(place / "checkpoints")
    rows: list[tuple[str, ...]] = [("checkpoint", "tokens", "bytes", "state", "kept", "mirror")]
    for name in sorted({*here, *there}, reverse=True):
        mirrored = "yes" if name in there else "no"
        path = here.get(name)
        if path is None:
            rows.append((name, "", "", "only in the mirror", "", mirrored))
            continue
        damage = saved.damage(path, hashes=False)
        if damage is not None:
            rows.append((name, "", "", damage.removeprefix(f"{place}/checkpoints/"), "", mirrored))
            continue
        known = saved.manifest(path)
        kept = "for good" if known.get("permanent") else "latest" if name == newest else ""
        tokens = known.get("tokens")
        told = "" if tokens is None else f"{tokens:,}"
        rows.append((name, told, f"{_size(path):,}", "complete", kept, mirrored))
    if len(rows) == 1:
        raise ConfigError(f"{place} holds no checkpoint")
    yield from (line.rstrip() for line in table(rows))


def _mirrored(place: Path) -> list[str]:
    record = place / "run.json"
    if not record.exists():
        return []
    settings = check(read_json(record)["settings"], RunSettings, str(record))
    where = settings.checkpoint.mirror
    return [] if where is None else mirror.names(mirror.place_of(where, place.resolve()))


def _size(path: Path) -> int:
    return sum(file["bytes"] for file in saved.manifest(path)["files"].values())
