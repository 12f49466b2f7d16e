"""A bounded folder of shards of stores, shared by all processes of a machine.

    <xxh3>-<bytes>          a shard, named by its contents: two jobs that read it share it, and one
                            that was replaced under its old name and size is another file
    .<xxh3>-<bytes>.part    one that is being fetched, held with flock by who fetches it
    .lock                   held while room is made, and while one gets its name or is removed

Who reads a shard holds it with flock, shared; only what nobody holds is removed, the longest unused
first. The kernel lets go of what a killed process held, so there is nothing to clean up after a
kill: an unheld .part goes when room is made next. There is no shared memory and there are no ports.
Every shard is hashed when it has come and when a process first reads it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mixtures.held import Held, is_at, is_held, let_go, removed
from pipeline import disk, objects
from pipeline.amounts import counted
from pipeline.files import State, file_hash, state_of

MAX_BYTES = 64 << 30
WAIT_SECONDS = 60.0  # for room that other processes hold
POLL_SECONDS = 0.05
FULL = (errno.ENOSPC, errno.EDQUOT)


class DamagedShard(ValueError):
    """A shard is not what its manifest says, also when it was fetched again; or it is gone."""


class CacheFull(ValueError):
    """What is being read leaves no room for one shard more."""


@dataclass(frozen=True)
class Shard:
    """A file on a store, as a manifest names it.

    Raises:
        ValueError: what it names is no size and hash; files of the cache are named by them, and a
            manifest may be anybody's.
    """

    url: str
    num_bytes: int
    xxh3: str

    def __post_init__(self) -> None:
        if type(self.num_bytes) is not int or not re.fullmatch("[0-9a-f]{32}", str(self.xxh3)):
            raise ValueError(
                f"{self.url}: its manifest names {self.num_bytes!r} bytes and hash "
                f"{self.xxh3!r}, which are no size and no hash; do not read what it is part of"
            )

    @property
    def name(self) -> str:
        return f"{self.xxh3}-{self.num_bytes}"


class ShardCache:
    """The cache at `folder`; processes that share it give the same `max_bytes`.

    `fetched_bytes` and `fetched` count what this process took from stores.
    """

    def __init__(self, folder: str | Path | None = None, max_bytes: int = MAX_BYTES) -> None:
        self.folder = disk.cache_folder() / "shards" if folder is None else Path(folder)
        self.max_bytes = max_bytes
        self.fetched_bytes = self.fetched = 0
        self._counting = threading.Lock()
        self._whole: set[State] = set()  # hashed by this process

    def __reduce__(self) -> tuple[type[ShardCache], tuple[Path, int]]:
        return ShardCache, (self.folder, self.max_bytes)  # to a worker, which counts for itself

    def hold(self, shard: Shard, make_room: Callable[[], bool] | None = None) -> Held:
        """The shard, fetched if it is not here.

        Args:
            make_room: lets go of something that this process holds; False: there is nothing.

        Raises:
            DamagedShard: the store holds other bytes, twice, or nothing.
            CacheFull: what is held leaves no room, for a minute.
            DiskError: the disk of the cache refuses.
            OSError: the store cannot be read.
        """
        give_up = time.monotonic() + WAIT_SECONDS
        while True:
            held = self.hold_now(shard)
            if held is not None:
                return held
            if self._fetched_elsewhere(shard) or (make_room is not None and make_room()):
                continue
            if shard.num_bytes > self.max_bytes or time.monotonic() > give_up:
                raise CacheFull(self._full(shard))
            time.sleep(POLL_SECONDS)

    def hold_now(self, shard: Shard) -> Held | None:
        """The same; None where another process is at it, or there is no room now."""
        with disk.explained(self.folder):
            held = self._open(shard)
            if held is not None:
                return held
            part = self._reserve(shard)
            if part is None:
                return None
            try:
                return self._fetch(shard, part)
            except BaseException:
                with self._alone():
                    part.path.unlink(missing_ok=True)
                    part.release()
                raise

    def _open(self, shard: Shard) -> Held | None:
        """The shard, if it is here and whole; a damaged one goes."""
        path = self.folder / shard.name
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        held = Held(path, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        try:
            if self._is_whole(path, shard) and is_at(descriptor, path):
                os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))  # when last used
                return held
            with self._alone():
                if is_at(descriptor, path):  # and not a whole one that came in its place
                    path.unlink()
        except FileNotFoundError:  # it was removed meanwhile
            pass
        held.release()
        return None

    def _is_whole(self, path: Path, shard: Shard) -> bool:
        state = state_of(path)
        if state not in self._whole:
            if path.stat().st_size != shard.num_bytes or file_hash(path) != shard.xxh3:
                return False
            self._whole.add(state)
        return True

    # --- fetching ---------------------------------------------------------------------------------

    def _part_of(self, shard: Shard) -> Path:
        return self.folder / f".{shard.name}.part"

    def _reserve(self, shard: Shard) -> Held | None:
        """Room for a shard, as a file that this process holds; None: it is taken, or no room."""
        part = self._part_of(shard)
        with self._alone():
            if (self.folder / shard.name).exists() or is_held(part):
                return None
            if not self._make_room(shard.num_bytes):
                return None
            held = Held(part, os.open(part, os.O_RDWR | os.O_CREAT, 0o644))
            fcntl.flock(held.descriptor, fcntl.LOCK_EX)
            return held

    def _fetched_elsewhere(self, shard: Shard) -> bool:
        """Whether another process was fetching it; waits until it is done, or dead."""
        try:
            descriptor = os.open(self._part_of(shard), os.O_RDONLY)
        except FileNotFoundError:
            return (self.folder / shard.name).exists()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        finally:
            let_go(descriptor)
        return True

    def _fetch(self, shard: Shard, held: Held) -> Held:
        part, path = held.path, self.folder / shard.name
        for attempt in range(2):
            self._download(shard, part)
            with self._counting:
                self.fetched_bytes += part.stat().st_size
                self.fetched += 1
            if part.stat().st_size == shard.num_bytes and file_hash(part) == shard.xxh3:
                with self._alone():  # flock lets go before it takes the other kind
                    os.rename(part, path)
                    self._whole.add(state_of(path))
                    fcntl.flock(held.descriptor, fcntl.LOCK_SH)
                held.path = path
                return held
            if attempt:
                raise DamagedShard(
                    f"{shard.url} is damaged: not the {shard.num_bytes:,} bytes that its manifest "
                    "names, twice; delete it and publish the plan again, or read on without it by "
                    "`on_damage: skip`"
                )
        raise AssertionError("unreachable")

    def _download(self, shard: Shard, part: Path) -> None:
        for attempt in range(2):
            try:
                return objects.download(shard.url, part)
            except FileNotFoundError:
                raise DamagedShard(
                    f"{shard.url} is gone, though its manifest names it; publish the plan again, "
                    "or read on without it by `on_damage: skip`"
                ) from None
            except OSError as error:
                if error.errno not in FULL:
                    raise
                if attempt:
                    raise OSError(error.errno, error.strerror, str(self.folder)) from None
                with self._alone():  # a disk smaller than the cache may be: what is unused goes
                    self._make_room(self.max_bytes)
        return None

    # --- room -------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / ".lock", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # see let_go

    def _files(self) -> list[tuple[Path, int]]:
        """Shards, the longest unused first, and what is being fetched, with their bytes."""
        found = []
        for path in self.folder.iterdir():
            name = path.name.removeprefix(".").removesuffix(".part")
            if path.name != ".lock" and name.count("-") == 1:
                with suppress(FileNotFoundError):  # it was removed meanwhile
                    found.append((path.stat().st_atime_ns, path, int(name.split("-")[1])))
        return [(path, size) for _, path, size in sorted(found)]

    def _make_room(self, num_bytes: int) -> bool:
        """Remove what nobody holds until so many bytes fit in; whether they do."""
        total, unheld = 0, []
        for path, size in self._files():
            if path.name.startswith(".") and not is_held(path):
                path.unlink(missing_ok=True)  # of a killed process
                continue
            total += size
            if not path.name.startswith("."):
                unheld.append((path, size))
        for path, size in unheld:
            if total + num_bytes <= self.max_bytes:
                break
            if removed(path):
                total -= size
        return total + num_bytes <= self.max_bytes

    def _full(self, shard: Shard) -> str:
        files = self._files()
        return (
            f"the cache {self.folder} holds {counted(len(files), 'shard')} of "
            f"{sum(size for _, size in files):,} bytes that are being read, and may hold "
            f"{self.max_bytes:,}: no room for the {shard.num_bytes:,} of {shard.url}; raise "
            "`max_bytes` of the cache, or give each job a folder of its own"
        )
