"""A second place for checkpoints, over fsspec: a folder, s3://, gs://.

    <mirror>/<name of the run>/step-00000120/...    manifest.json last: without it a copy is none
    <mirror>/<name of the run>/run.json, plan.json, metrics.jsonl    as at the newest checkpoint

A thread copies what is complete here and not there, newest first; what fails is told and tried
again, and never stops the run. A copy is compared with its hashes when it is fetched.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pipeline import objects
from pipeline.files import read_json
from trainer import saved

RECORDS = ("run.json", "plan.json", "metrics.jsonl")  # small; the run goes on without them
AGAIN_SECONDS = 60.0  # after a failure, where no checkpoint is published before
POLL_SECONDS = 0.1
LAST_SECONDS = 600.0  # that the end of a run waits for the copy of its last checkpoint


class Mirror:
    """Copies the checkpoints of one run while it runs.

    Args:
        folder: of the run.
        place: its folder in the mirror.
        keep: as of the run.
        tell: shows a line; called by the thread.
    """

    def __init__(self, folder: Path, place: str, keep: int, tell: Callable[[str], None]) -> None:
        self._folder, self._place, self._keep, self._tell = folder, place, keep, tell
        self._held: str | None = None
        self._failures = 0
        self._asked, self._done = 1, 0  # the first: what an earlier process of the run left behind
        self._new: set[str] = set()  # published anew: what the mirror has of these is outdated
        self._due, self._closed = threading.Event(), False
        self._due.set()
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        self._thread.start()

    @property
    def held(self) -> tuple[str, ...]:
        """What is being copied, and must not be deleted meanwhile."""
        held = self._held
        return (held,) if held else ()

    def wake(self, name: str) -> None:
        """Say that a checkpoint was published."""
        self._new.add(name)
        self._asked += 1
        self._due.set()

    def finish(self, seconds: float = LAST_SECONDS) -> None:
        """Wait for what is to be copied, but not for ever, and not after a try that failed."""
        failures, end = self._failures, time.monotonic() + seconds
        self._due.set()
        while self._done < self._asked:
            time.sleep(POLL_SECONDS)
            if self._failures > failures or time.monotonic() > end:
                self._tell(
                    f"{self._place} has no copy of the last checkpoint; copy "
                    f"{self._folder / 'checkpoints'} there, each manifest.json last"
                )
                return

    def close(self) -> None:
        """Let the thread end; a copy under way is left unfinished."""
        self._closed = True
        self._due.set()

    def _run(self) -> None:
        failed = False
        while True:
            self._due.wait(AGAIN_SECONDS if failed else None)
            if self._closed:
                return
            self._due.clear()
            asked = self._asked
            try:
                self._copy()
                self._done, failed = asked, False
            except Exception as error:
                self._tell(f"{self._place}: no copy of a checkpoint: {error}; tried again later")
                failed = True
                self._failures += 1

    def _copy(self) -> None:
        """Bring the mirror up to date, then delete there what may go."""
        there = names(self._place)
        for path in saved.newest_first(self._folder / "checkpoints"):
            if self._closed:
                return
            self._held = path.name
            try:
                new = path.name in self._new
                if (new or path.name not in there) and saved.damage(path) is None:
                    if new and path.name in there:
                        remove(self._place, path.name)
                    send(path, self._place)
                    self._new.discard(path.name)
            except FileNotFoundError:
                if path.exists():
                    raise
            finally:
                self._held = None
        for name in RECORDS:
            if (self._folder / name).exists():
                objects.upload(self._folder / name, f"{self._place}/{name}")
        remove_old(self._place, self._keep, saved.latest(self._folder / "checkpoints"))


def place_of(mirror: str, folder: Path) -> str:
    """The folder of a run in a mirror."""
    return f"{mirror.rstrip('/')}/{folder.name}"


def names(place: str) -> list[str]:
    """Checkpoints that are complete there, newest first."""
    end = f"/{saved.MANIFEST}"
    found = [name.removesuffix(end) for name in objects.names(place) if name.endswith(end)]
    return sorted((name for name in found if name.startswith("step-")), reverse=True)


def send(path: Path, place: str) -> None:
    """Copy one checkpoint, its manifest last."""
    for file in sorted(path.iterdir(), key=lambda file: (file.name == saved.MANIFEST, file.name)):
        objects.upload(file, f"{place}/{path.name}/{file.name}")


def fetch(place: str, name: str, folder: Path) -> str | None:
    """Copy a checkpoint from there into `folder`; returns what is wrong with the copy, None: it
    stands there, complete."""
    temporary = folder / f".{name}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    manifest = temporary / saved.MANIFEST
    try:
        objects.download(f"{place}/{name}/{saved.MANIFEST}", manifest)
        for file in read_json(manifest)["files"]:
            objects.download(f"{place}/{name}/{file}", temporary / file)
    except (OSError, ValueError, KeyError) as error:
        shutil.rmtree(temporary)
        return f"{place}/{name}: {error}"
    damage = saved.damage(temporary)
    if damage is not None:
        shutil.rmtree(temporary)
        return damage.replace(str(temporary), f"{place}/{name}")
    shutil.rmtree(folder / name, ignore_errors=True)
    temporary.rename(folder / name)
    return None


def remove_old(place: str, keep: int, newest: str | None) -> None:
    """Delete there what may go, as in the folder of the run; not what `latest` names there: a later
    one, of which the run knows that it is damaged, looks as good."""
    copies = []
    for name in names(place):
        found = json.loads(objects.read(f"{place}/{name}/{saved.MANIFEST}"))
        copies.append(saved.Copy(name, True, found.get("permanent", False)))
    for name in saved.superfluous(copies, keep, [newest] if newest else []):
        remove(place, name)


def remove(place: str, name: str) -> None:
    """Delete one, its manifest first."""
    inside = [file for file in objects.names(place) if file.startswith(f"{name}/")]
    for file in sorted(inside, key=lambda file: not file.endswith(saved.MANIFEST)):
        objects.delete(f"{place}/{file}")
