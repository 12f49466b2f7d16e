"""When checkpoints are written, by whom, and what becomes of a run where that fails.

A save that fails is told and never published; the run goes on, since a later one may succeed, and
fails only where its last one does. With `async` a thread writes a copy of the state through a
process group of its own (on the group of the run its collectives would mix with those of the step
and abort). A save that is due while one is still being written is left out and told: a slow disk
must not stop the run (DeepSpeed #7533, accelerate #2912: the watchdog killed the job). All ranks
decide alike.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from trainer import checkpoint, saved
from trainer.mirror import Mirror, place_of
from trainer.parallel.world import World
from trainer.settings import Checkpoint, RunSettings

LAST_SECONDS = 1200.0  # that a run waits for a save at its end; collectives wait 1800
Tell = Callable[[str], None]


class SaveError(ValueError):
    """The last checkpoint of a run could not be written; the message says why."""


class Saver:
    """Writes the checkpoints of one run. Every rank makes one and calls it at the same steps.

    Args:
        folder: of the checkpoints.
        tell: shows a line; called on the first rank only.
        mirror: gets what was published; of the first rank only.
    """

    def __init__(
        self,
        folder: Path,
        settings: Checkpoint,
        world: World,
        tell: Tell,
        mirror: Mirror | None = None,
    ) -> None:
        self._folder, self._settings, self._world = folder, settings, world
        self._tell, self._mirror = tell, mirror
        self._background = settings.background
        self._stager = checkpoint.stager(world) if self._background else None
        self._group = self._new_group()
        self._writing: Future[None] | None = None
        self._patience = LAST_SECONDS
        self._step = 0  # of the newest attempt
        self._failed: str | None = None  # why it failed, where it did
        if world.first:
            saved.remove_unfinished(folder)

    @classmethod
    def of(cls, run: RunSettings, folder: Path, world: World, tell: Tell) -> Saver:
        """That of a run in its folder."""
        mirror, settings = None, run.checkpoint
        if settings.mirror is not None and world.first:
            place = place_of(settings.mirror, folder)
            mirror = Mirror(folder, place, settings.keep, tell)
        return cls(folder / "checkpoints", settings, world, tell, mirror)

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        record: dict[str, Any],
        *,
        last: bool = False,
    ) -> float:
        """Write step-N with N = record["step"], or begin to; returns the seconds that it took away
        from the run. The `last` one waits for the one before."""
        began = time.perf_counter()
        if self._settled(wait=last):
            self._begin(model, optimizer, record)
        elif self._world.first:
            self._tell(
                f"step {record['step']}: no checkpoint, that of step {self._step} is still being "
                "written; save less often (`checkpoint.every`), or to a faster disk"
            )
        return time.perf_counter() - began

    def finish(self) -> None:
        """Wait for what is being written, here and in the mirror.

        Raises:
            SaveError: the newest checkpoint could not be written.
        """
        self._settled(wait=True)
        if self._mirror is not None:
            self._mirror.finish()
        if self._failed is not None:
            raise SaveError(
                f"{self._folder / saved.name(self._step)} could not be written: {self._failed}. "
                "What it would hold is lost: mend the cause and call again, the run goes on from "
                "the checkpoint before"
            )

    def close(self) -> None:
        """End threads, also where the run failed; what is being written may stay unfinished."""
        self._failure(wait=True)
        if self._stager is not None:
            self._stager.close()
        if self._mirror is not None:
            self._mirror.close()

    def _begin(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, record: dict[str, Any]
    ) -> None:
        self._step, self._failed = record["step"], None
        state: Any = checkpoint.state_of(model, optimizer)
        if self._stager is not None:
            state = self._stager.stage(state)
        self._writing = Future()
        work = (self._writing, state, record)
        if self._stager is None:
            self._fulfil(*work)
        else:  # a daemon: a disk that hangs does not keep a process that ends
            threading.Thread(target=self._fulfil, args=work, name="checkpoint", daemon=True).start()

    def _fulfil(self, writing: Future[None], state: Any, record: dict[str, Any]) -> None:
        try:
            self._write(state, record)
            writing.set_result(None)
        except BaseException as error:
            writing.set_exception(error)
            if not isinstance(error, Exception):
                raise

    def _write(self, state: Any, record: dict[str, Any]) -> None:
        checkpoint.write(self._folder, state, record, self._world, self._group)
        if not self._world.first:
            return
        held = self._mirror.held if self._mirror else ()
        saved.remove_old(self._folder, self._settings.keep, held)
        if self._mirror:
            self._mirror.wake(saved.name(record["step"]))

    def _settled(self, wait: bool) -> bool:
        """Whether no save is under way on any rank; tells of one that failed on any."""
        error = self._failure(wait)
        busy = self._writing is not None and not self._writing.done()
        any_busy, any_failed = self._on_any(busy, error is not None)
        if any_busy and not wait:
            return False
        if self._writing is not None and any_failed:
            self._failed = _said(error) if error else "another rank says why"
            if self._world.first:
                before = saved.newest_name(self._folder)
                self._tell(
                    f"step {self._step}: the checkpoint could not be written: {self._failed}; the "
                    f"run goes on, {before or 'none'} is the newest that is complete"
                )
            self._group = self._new_group()  # a group in which a collective timed out is of no use
        if any_busy:  # it hangs; the copy that it writes must stay as it is
            return False
        self._writing = None
        return True

    def _failure(self, wait: bool) -> BaseException | None:
        """Why what was begun failed, where it did; one that hangs has failed as well."""
        if self._writing is None or not (wait or self._writing.done()):
            return None
        try:
            return self._writing.exception(self._patience)
        except TimeoutError:
            self._patience = 0.0  # once
            return TimeoutError(f"it is still being written after {LAST_SECONDS:,.0f} seconds")

    def _on_any(self, *flags: bool) -> list[bool]:
        """Each flag: whether it is set on any rank."""
        if self._world.mesh is None:
            return list(flags)
        found = torch.tensor([float(flag) for flag in flags], device=self._world.device)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return [bool(flag) for flag in found.tolist()]

    def _new_group(self) -> dist.ProcessGroup | None:
        if self._world.mesh is None or not self._background:
            return None
        group: dist.ProcessGroup = dist.new_group(backend="gloo")
        return group


def _said(error: BaseException) -> str:
    return str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
