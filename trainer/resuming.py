"""Which checkpoint a run goes on from: the newest that is complete, here or in its mirror.

Imports no torch. A copy that is damaged, cut short or gone is told with the reason, and the next
one is taken: of the same step in the mirror, or an older one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipeline import objects
from pipeline.config import ConfigError
from trainer import mirror, saved
from trainer.branch import checkpoint_of
from trainer.settings import RunSettings

Tell = Callable[[str], None]


def find(run: RunSettings, folder: Path, tell: Tell) -> Path | None:
    """The checkpoint to go on from, fetched from the mirror where the copy there is better; that of
    the parent for a branch that has none yet; None: the run begins."""
    checkpoints = folder / "checkpoints"
    place = mirror.place_of(run.checkpoint.mirror, folder) if run.checkpoint.mirror else None
    there = _mirrored(place, tell)
    here = [path.name for path in saved.newest_first(checkpoints)]
    for name in sorted({*here, *there}, reverse=True):
        damage = saved.damage(checkpoints / name) if name in here else f"{name} is not here"
        if damage is None:
            return checkpoints / name
        if place is not None and name in there:
            wrong = mirror.fetch(place, name, checkpoints)
            if wrong is None:
                tell(f"{damage}; fetched from {place}")
                return checkpoints / name
            damage = f"{damage}; {wrong}"
        tell(f"passed over: {damage}")
    return None if run.branch is None else checkpoint_of(run.branch)


def restore_records(run: RunSettings, folder: Path, tell: Tell) -> None:
    """Where a run is gone from this disk and its mirror has it: fetch what says which run it is."""
    if run.checkpoint.mirror is None or (folder / "run.json").exists():
        return
    place = mirror.place_of(run.checkpoint.mirror, folder)
    if not _mirrored(place, tell):
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in mirror.RECORDS:
        if objects.exists(f"{place}/{name}"):
            objects.download(f"{place}/{name}", folder / name)
    tell(f"{folder} holds no run; {place} does, which goes on here (--fresh starts over)")


def forget(run: RunSettings, folder: Path) -> None:
    """Delete what a mirror holds of a run that starts over."""
    if run.checkpoint.mirror is None:
        return
    place = mirror.place_of(run.checkpoint.mirror, folder)
    for name in mirror.names(place):
        mirror.remove(place, name)
    for name in mirror.RECORDS:
        objects.delete(f"{place}/{name}")


def _mirrored(place: str | None, tell: Tell) -> list[str]:
    if place is None:
        return []
    try:
        return mirror.names(place)
    except (OSError, ConfigError) as error:
        tell(f"the mirror cannot be read: {error}; going on with what is here")
        return []
