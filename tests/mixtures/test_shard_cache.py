from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import xxhash
from web_server import CUT, Web, web_server

from mixtures import shard_cache
from mixtures.held import is_held
from mixtures.shard_cache import CacheFull, DamagedShard, Shard, ShardCache
from pipeline import objects
from pipeline.disk import DiskError

SIZE = 1_000


def shard(folder: Path, number: int, size: int = SIZE) -> Shard:
    """A shard on a store, here a folder."""
    data = bytes([number]) * size
    objects.write(f"file://{folder}/{number}", data)
    return Shard(f"file://{folder}/{number}", size, xxhash.xxh3_128_hexdigest(data))


@pytest.fixture
def shards(tmp_path: Path) -> list[Shard]:
    return [shard(tmp_path / "store", number) for number in range(6)]


def names(cache: ShardCache) -> set[str]:
    return {path.name for path in cache.folder.iterdir()} - {".lock"}


def test_a_shard_is_fetched_once_and_the_longest_unused_goes(
    tmp_path: Path, shards: list[Shard]
) -> None:
    cache = ShardCache(tmp_path / "cache", 3 * SIZE)
    for number in (0, 1, 2, 0, 1, 3, 0):  # 2 was unused for the longest time
        held = cache.hold(shards[number])
        assert held.path.read_bytes() == bytes([number]) * SIZE
        held.release()
    assert names(cache) == {shards[n].name for n in (0, 1, 3)}
    assert (cache.fetched, cache.fetched_bytes) == (4, 4 * SIZE)


def test_what_is_held_stays_and_the_bound_holds(
    tmp_path: Path, shards: list[Shard], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_cache, "WAIT_SECONDS", 0.1)
    cache = ShardCache(tmp_path / "cache", 2 * SIZE)
    first, second = cache.hold(shards[0]), cache.hold(shards[1])
    message = (
        f"{cache.folder} holds 2 shards of 2,000 bytes that are being read, and may hold 2,000: no "
        f"room for the 1,000 of {shards[2].url}; raise `max_bytes`"
    )
    other = ShardCache(tmp_path / "cache", 2 * SIZE)  # another job
    with pytest.raises(CacheFull, match=message):
        other.hold(shards[2])
    assert names(cache) == {shards[0].name, shards[1].name}
    first.release()
    other.hold(shards[2])
    assert names(cache) == {shards[1].name, shards[2].name}
    with pytest.raises(CacheFull, match="no room for the 2,001"):
        other.hold(shard(tmp_path / "store", 9, 2 * SIZE + 1))
    # this process can let go of something itself
    own = [second]
    assert cache.hold(shards[3], lambda: own.pop().release() is None if own else False) is not None


@pytest.mark.parametrize(
    ("num_bytes", "xxh3"),
    [(5, "/../../victim"), ("5/../../victim", "0" * 32), (5, "../" * 10 + "a/b"), (5, None)],
)
def test_a_manifest_cannot_name_a_file_outside_of_the_cache(num_bytes: Any, xxh3: Any) -> None:
    """Else one from the internet could remove any file: what is not whole is removed."""
    with pytest.raises(ValueError, match="no size and no hash"):
        Shard("https://example.org/plan/heldout.parquet", num_bytes, xxh3)


def test_a_flipped_byte_here_is_found_and_the_shard_fetched_again(
    tmp_path: Path, shards: list[Shard]
) -> None:
    cache = ShardCache(tmp_path / "cache")
    cache.hold(shards[0]).release()
    path = cache.folder / shards[0].name
    path.write_bytes(b"\x01" + path.read_bytes()[1:])
    for reader in (cache, ShardCache(tmp_path / "cache")):
        held = reader.hold(shards[0])
        assert held.path.read_bytes() == bytes(SIZE)
        held.release()
    assert cache.fetched == 2


def test_other_bytes_in_the_store_are_fetched_again_then_named(
    tmp_path: Path, shards: list[Shard]
) -> None:
    """OLMo-core's fingerprint has names and sizes alone: this one is replaced under both."""
    cache = ShardCache(tmp_path / "cache")
    objects.write(shards[0].url, b"\x07" * SIZE)
    with pytest.raises(DamagedShard, match=f"{shards[0].url} is damaged: not the 1,000 bytes .*"):
        cache.hold(shards[0])
    assert cache.fetched == 2
    objects.delete(shards[1].url)
    with pytest.raises(DamagedShard, match=f"{shards[1].url} is gone, though its manifest"):
        cache.hold(shards[1])
    assert names(cache) == set()


def test_a_shard_replaced_under_its_name_is_another_file(tmp_path: Path) -> None:
    cache = ShardCache(tmp_path / "cache")
    before = shard(tmp_path / "store", 1)
    cache.hold(before).release()
    objects.write(before.url, b"\x09" * SIZE)
    after = Shard(before.url, SIZE, xxhash.xxh3_128_hexdigest(b"\x09" * SIZE))
    assert cache.hold(after).path.read_bytes() == b"\x09" * SIZE
    assert cache.hold(before).path.read_bytes() == b"\x01" * SIZE
    assert names(cache) == {before.name, after.name}


READER = """
import sys
from mixtures.shard_cache import Shard, ShardCache
cache = ShardCache(sys.argv[1], int(sys.argv[2]))
print("ready", flush=True)
for line in sys.stdin:
    url, size, xxh3 = line.split()
    held = cache.hold(Shard(url, int(size), xxh3))
    print(held.path.stat().st_size, cache.fetched, flush=True)
    if xxh3[0] in sys.argv[3:]:
        continue
    held.release()
"""


def reader(cache: ShardCache, *keep: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", READER, str(cache.folder), str(cache.max_bytes), *keep]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def ask(process: subprocess.Popen[str], shard: Shard) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{shard.url} {shard.num_bytes} {shard.xxh3}\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def served(web: Web, name: str, data: bytes) -> Shard:
    web.files[f"/{name}"] = data
    return Shard(f"{web.url}/{name}", len(data), xxhash.xxh3_128_hexdigest(data))


def wait_for(path: Path) -> None:
    for _ in range(2_000):
        if path.exists():
            return
        time.sleep(0.005)
    raise AssertionError(f"{path} did not appear")


def test_a_kill_during_a_download_leaves_nothing_that_is_in_the_way(tmp_path: Path) -> None:
    """streaming #781 and eight more: after a kill a name of shared memory was left, and the next
    start hung. Here a second process waits for the first, which is killed, and takes over."""
    gate = threading.Event()
    gate.set()
    with web_server() as web:
        cache = ShardCache(tmp_path / "cache")
        one, two = reader(cache), reader(cache)

        def slow(method: str, number: int) -> None:
            if method == "GET":
                gate.wait(30)

        web.fault = slow
        wanted = served(web, "a", os.urandom(50_000))
        gate.clear()
        ask(one, wanted)
        part = cache.folder / f".{wanted.name}.part"
        wait_for(part)
        ask(two, wanted)
        time.sleep(0.2)
        os.kill(one.pid, signal.SIGKILL)
        one.communicate()
        gate.set()
        assert answer(two) == "50000 1"
        two.communicate()
        assert names(cache) == {wanted.name}
        part.write_bytes(b"left by a kill while nobody waited")
        cache.hold(served(web, "b", b"b" * 10)).release()
        assert not part.exists()


def test_two_jobs_on_one_cache_fetch_each_shard_once(tmp_path: Path) -> None:
    with web_server() as web:
        cache = ShardCache(tmp_path / "cache")
        wanted = [served(web, f"{n}", os.urandom(20_000)) for n in range(12)]
        jobs = [reader(cache) for _ in range(3)]
        for number in range(len(wanted)):
            for at, job in enumerate(jobs):
                ask(job, wanted[(number + 4 * at) % len(wanted)])
        for job in jobs:
            out, _ = job.communicate(timeout=60)
            assert [line.split()[0] for line in out.splitlines()] == ["20000"] * len(wanted)
        assert sum(method == "GET" for method, _ in web.asked) == len(wanted)
        assert names(cache) == {shard.name for shard in wanted}


def test_two_jobs_on_a_small_cache_get_what_they_ask_for(tmp_path: Path) -> None:
    with web_server() as web:
        cache = ShardCache(tmp_path / "cache", 50_000)  # two and a half shards
        wanted = [served(web, f"{n}", os.urandom(20_000)) for n in range(8)]
        jobs = [reader(cache) for _ in range(2)]
        for at, job in enumerate(jobs):
            for turn in range(24):
                ask(job, wanted[(5 * turn + at) % len(wanted)])
        for job in jobs:
            out, _ = job.communicate(timeout=60)
            assert [line.split()[0] for line in out.splitlines()] == ["20000"] * 24
        assert sum(int(name.split("-")[1]) for name in names(cache)) <= 50_000


def test_a_connection_that_breaks_is_asked_again(tmp_path: Path) -> None:
    with web_server() as web:
        wanted = served(web, "a", os.urandom(60_000))
        web.fault = lambda method, number: {1: 503, 3: CUT}.get(number)
        cache = ShardCache(tmp_path / "cache")
        assert cache.hold(wanted).path.read_bytes() == web.files["/a"]
        assert cache.fetched == 1


def test_a_full_disk_costs_first_what_is_unused_then_one_line(
    tmp_path: Path, shards: list[Shard], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, left = ShardCache(tmp_path / "cache"), 2
    real = objects.download

    def download(url: str, path: Path) -> None:
        if len(names(cache)) > left:  # with the one that comes
            raise OSError(errno.ENOSPC, "No space left on device", url)
        real(url, path)

    monkeypatch.setattr(objects, "download", download)
    held = [cache.hold(shards[0])]
    cache.hold(shards[1]).release()
    held.append(cache.hold(shards[2]))  # in the place of 1
    assert names(cache) == {shards[0].name, shards[2].name}
    message = f"^{cache.folder}: its disk is full .* free some, or choose another disk.*"
    with pytest.raises(DiskError, match=message):
        cache.hold(shards[3])
    assert names(cache) == {shards[0].name, shards[2].name}


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, shards: list[Shard]) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(OSError, match=f"{tmp_path}/cache"):
        ShardCache(tmp_path / "cache").hold(shards[0])


def test_threads_of_one_process_fetch_a_shard_once(tmp_path: Path, shards: list[Shard]) -> None:
    cache = ShardCache(tmp_path / "cache")
    threads = [threading.Thread(target=lambda n: cache.hold(shards[n]).release(), args=(n % 3,))
               for n in range(12)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert cache.fetched == 3
    assert names(cache) == {shards[n].name for n in range(3)}


def test_overlapping_fetches_in_a_small_cache_all_succeed(tmp_path: Path) -> None:
    """What one thread lists, another one renames or removes; later all find damage at once."""
    many = [shard(tmp_path / "store", number) for number in range(60)]

    def read(cache: ShardCache, seed: int) -> None:
        draw, ends = random.Random(seed), time.monotonic() + 1
        while time.monotonic() < ends:
            number = draw.randrange(len(many))
            held = cache.hold(many[number])
            assert held.path.read_bytes() == bytes([number]) * SIZE
            held.release()

    for _ in range(2):
        cache = ShardCache(tmp_path / "cache", 20 * SIZE)
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(read, [cache] * 6, range(6)))
        assert cache.fetched > 20
        assert 0 < len(names(cache)) <= 20
        assert not any(is_held(path) for path in cache.folder.iterdir())
        for path in cache.folder.glob("[!.]*"):
            path.write_bytes(b"?" * SIZE)


def test_what_is_dropped_is_let_go(tmp_path: Path, shards: list[Shard]) -> None:
    cache = ShardCache(tmp_path / "cache", SIZE)
    for wanted in shards:  # each needs the room of the one before
        held = cache.hold(wanted)
        assert is_held(held.path)
        del held


@contextmanager
def forked() -> Iterator[None]:
    """A fork, which has every open file of this process."""
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_neither_keeps_a_lock_nor_lets_go_of_it(tmp_path: Path, shards: list[Shard]) -> None:
    """A worker of a DataLoader may be forked while a thread is in here."""
    cache = ShardCache(tmp_path / "cache")
    with ExitStack() as forks:
        with cache._alone():
            forks.enter_context(forked())
            assert is_held(cache.folder / ".lock")
        assert not is_held(cache.folder / ".lock")
        held = cache.hold(shards[0])
        forks.enter_context(forked())
        child = os.fork()
        if child == 0:
            held.release()
            os._exit(0)
        os.waitpid(child, 0)
        assert is_held(held.path)
        held.release()
        assert not is_held(held.path)
