"""The packed parts of a plan, opened as they are asked for: local ones in their place, those of a
store by way of the cache, which is filled ahead of the reader.

Only the groups of parts that the reader is in, and the next ones, are held: see order.py.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import lru_cache
from pathlib import Path
from typing import Any

from mixtures.held import Held
from mixtures.packed import forgotten_of, read_manifest, remedy
from mixtures.part import Part
from mixtures.shard_cache import DamagedShard, Shard, ShardCache
from pipeline.files import SUSPECTS, hash_once, part_name
from pipeline.objects import is_url

MAX_OPEN_PARTS = 16_384  # mappings; Linux allows 65,530 (vm.max_map_count)
FETCHES = 4  # at a time: a line is full with few streams of 64 MB
Key = tuple[str, int]  # packed folder, part


class OpenParts:
    """Parts by (folder, number).

    Args:
        length: of the windows that are read.
        cache: of parts on stores; default: the one of this machine.
        verify: hash local parts too, when they are opened first.
    """

    def __init__(
        self, length: int, cache: ShardCache | None = None, *, verify: bool = False
    ) -> None:
        self._length = length
        self.cache = ShardCache() if cache is None else cache
        self._verify = verify
        self._open: OrderedDict[Key, tuple[Part, Held | None]] = OrderedDict()
        self._manifest = lru_cache(maxsize=None)(read_manifest)
        self._forgotten = lru_cache(maxsize=None)(lambda name: forgotten_of(self._manifest(name)))
        self._ahead = _Ahead(self._fetch)
        self._alone = threading.RLock()  # a trainer asks too while batches are made ahead

    def part(self, folder: str, number: int) -> Part:
        """An open part.

        Raises:
            DamagedShard: its bytes are not those that were packed.
            CacheFull, DiskError, OSError: see ShardCache.hold.
        """
        key = folder, number
        with self._alone:
            found = self._open.pop(key, None) or self._opened(key)
            self._open[key] = found  # as the last one
            if len(self._open) > MAX_OPEN_PARTS:
                self._drop_oldest()
            return found[0]

    def keep(self, now: Sequence[Key], soon: Sequence[Key]) -> None:
        """Let go of parts on stores but these, and fetch those that are missing, `now` first."""
        wanted = {*now, *soon}
        with self._alone:
            for key in [k for k in self._open if is_url(k[0]) and k not in wanted]:
                self._let_go(key)
            ahead = [key for key in now if key not in self._open]
            self._ahead.fetch(ahead or [key for key in soon if key not in self._open], wanted)

    def _opened(self, key: Key) -> tuple[Part, Held | None]:
        folder, number = key
        if not is_url(folder):
            path = Path(folder) / part_name(number, "arrow")
            if self._verify:
                self._require_whole(path)
            return Part(path, self._length, self._forgotten(folder)), None
        held = self._ahead.take(key) or self.cache.hold(self._shard(key), self._drop_oldest)
        return Part(held.path, self._length, self._forgotten(folder)), held

    def _require_whole(self, path: Path) -> None:
        known = self._manifest(str(path.parent))["files"].get(path.name, {})
        right = (known.get("xxh3"), known.get("before"))  # before: while it is masked
        if not path.exists() or hash_once(path) not in right:
            raise DamagedShard(
                f"{path} is missing, or not as it was written {SUSPECTS}; "
                f"{remedy(str(path.parent))}"
            )

    def _shard(self, key: Key) -> Shard:
        folder, number = key
        name = part_name(number, "arrow")
        known: dict[str, Any] | None = self._manifest(folder)["files"].get(name)
        if known is None:
            raise DamagedShard(
                f"{folder}/manifest.json knows no {name}: the run was packed for fewer tokens; "
                "publish its plan again"
            )
        return Shard(f"{folder}/{name}", known["bytes"], known["xxh3"])

    def _fetch(self, key: Key) -> Held | None:
        return self.cache.hold_now(self._shard(key))

    def _drop_oldest(self) -> bool:
        """Let go of the part that was asked for the longest time ago; False: there is none."""
        if not self._open:
            return self._ahead.drop()
        self._let_go(next(iter(self._open)))
        return True

    def _let_go(self, key: Key) -> None:
        _, held = self._open.pop(key, (None, None))  # it is gone where another thread closed all
        if held is not None:
            held.release()

    def close(self) -> None:
        """Let go of everything, without waiting for a thread that is at a download."""
        self._ahead.close()
        opened, self._open = self._open, OrderedDict()
        for _, held in list(opened.values()):
            if held is not None:
                held.release()


class _Ahead:
    """Fetches by a few threads, which end when nothing waits. They are daemons: a download that
    hangs ends with the process."""

    def __init__(self, fetch_one: Callable[[Key], Held | None]) -> None:
        self._fetch_one = fetch_one
        self._lock = threading.Lock()
        self._waiting: deque[Key] = deque()
        self._futures: dict[Key, Future[Held | None]] = {}
        self._running = 0

    def fetch(self, keys: Sequence[Key], wanted: set[Key]) -> None:
        """Fetch these, in this order, also what failed before; let go of what is not wanted."""
        with self._lock:
            ended = [key for key, future in self._futures.items() if future.done()]
            gone = [key for key in ended if key not in wanted or _failed(self._futures[key])]
            done = [self._futures.pop(key) for key in gone]
            self._waiting = deque(key for key in keys if key not in self._futures)
            for _ in range(min(FETCHES - self._running, len(self._waiting))):
                self._running += 1
                threading.Thread(target=self._work, name="fetch-ahead", daemon=True).start()
        for future in done:
            _release(future)

    def take(self, key: Key) -> Held | None:
        """What was fetched, waited for if a thread is at it; None: nobody is, or it failed."""
        with self._lock:
            if key in self._waiting:
                self._waiting.remove(key)
            future = self._futures.pop(key, None)
        try:
            return None if future is None else future.result()
        except OSError:  # of minutes ago, perhaps
            return None

    def drop(self) -> bool:
        """Let go of one that nobody has asked for yet; False: there is none."""
        with self._lock:
            self._waiting.clear()
            done = [key for key, future in self._futures.items() if future.done()]
            if not done:
                return False
            future = self._futures.pop(done[0])
        _release(future)
        return True

    def close(self) -> None:
        with self._lock:
            self._waiting.clear()
            futures, self._futures = list(self._futures.values()), {}
        for future in futures:
            future.add_done_callback(_release)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                key = self._waiting.popleft()
                future = self._futures[key] = Future()
            try:
                future.set_result(self._fetch_one(key))
            except BaseException as error:  # raised again where the part is asked for
                future.set_exception(error)


def _failed(future: Future[Held | None]) -> bool:
    """Whether asking again may help: it does not for damage, which was fetched twice."""
    error = future.exception()
    return not isinstance(error, DamagedShard) if error else future.result() is None


def _release(future: Future[Held | None]) -> None:
    held = None if future.exception() else future.result()
    if held is not None:
        held.release()
