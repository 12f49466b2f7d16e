"""Files that are either whole or absent: temporary name, fsync, rename; their names and hashes."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import orjson
import xxhash

from pipeline import disk

SUSPECTS = "(the disk, or another program?)"  # of every damaged file
DAMAGED = f"is damaged {SUSPECTS}"
CHUNK_BYTES = 1 << 20
# How often, and how long apart, a lock is asked for again that another process may only look at
LOOKS, LOOK_SECONDS = 5, 0.02
State = tuple[str, int, int]  # of a file: path, inode, time
SEAL = "seal"  # key of sealed JSON: hash of the rest


def part_name(part: int, suffix: str = "parquet") -> str:
    return f"part-{part:05d}.{suffix}"


def part_number(path: Path) -> int:
    return int(path.name.split(".")[0].removeprefix("part-"))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes the name of `path` when the block succeeds.

    The temporary name carries the process id, so that a killed attempt never meets a live one.

    Raises:
        OSError: a disk refuses (see disk.py); names `path`, never the temporary one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        ours = error.filename is None or Path(error.filename) == temporary
        if not ours or error.errno not in disk.REFUSED:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any, indent: int | None = 1) -> None:
    """Write JSON atomically, keys in the order given; without indent it is ten times as fast."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, ensure_ascii=False, indent=indent) + "\n", "utf-8")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def write_sealed(path: Path, value: dict[str, Any], indent: int | None = 1) -> None:
    """Write JSON whose key `seal` is the hash of the rest: a flipped bit is noticed."""
    write_json(path, {**value, SEAL: _seal(value)}, indent)


def read_sealed(path: Path, strict: bool = False) -> dict[str, Any] | None:
    """What was sealed, without its seal; None where the file is absent or damaged.

    Args:
        strict: a file without a seal is damaged too; else it may be older than seals are.
    """
    try:
        return unsealed(path.read_bytes(), strict)
    except FileNotFoundError:
        return None


def unsealed(data: bytes, strict: bool = False) -> dict[str, Any] | None:
    """The same, of the bytes of a file."""
    try:
        found: dict[str, Any] = orjson.loads(data)
        seal = found.pop(SEAL, None)
    except (ValueError, AttributeError):
        return None
    if seal is None and not strict:
        return found
    # As `write_sealed` writes a record: what was hashed stands there, before the seal.
    if seal == _hash(data[:-_SEAL_BYTES] + b"}") or seal == _seal(found):
        return found
    return None


_SEAL_BYTES = len(f', "{SEAL}": "0123456789abcdef"}}\n')


def _seal(value: dict[str, Any]) -> str:
    return _hash(json.dumps(value, ensure_ascii=False).encode())


def _hash(data: bytes) -> str:
    return xxhash.xxh3_64_hexdigest(data)


def file_hash(path: Path) -> str:
    """xxh3-128 of a file's bytes, 32 hex digits."""
    digest = xxhash.xxh3_128()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def hash_once(path: Path) -> str:
    """file_hash of a file, asked once a process while it is the same file (4 GB/s)."""
    state = state_of(path)
    if state not in _hashes:
        _hashes[state] = file_hash(path)
    return _hashes[state]


_hashes: dict[State, str] = {}


def state_of(path: Path) -> State:
    stat = path.stat()
    return str(path), stat.st_ino, stat.st_mtime_ns


def taken(file: IO[Any]) -> bool:
    """Take a file with flock, alone; False: another process holds it. Who looks whether it is held
    (below) is waited for."""
    for turn in range(1 + LOOKS):
        time.sleep(LOOK_SECONDS if turn else 0)
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


def is_held(lock: Path) -> bool:
    """Whether a process of this machine holds a file with flock. To look is to hold it, shared, for
    some microseconds."""
    if not lock.exists():
        return False
    with open(lock) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def remove_temporaries(root: Path) -> None:
    """Delete what killed attempts left behind. Call only while holding the corpus lock."""
    for path in list(root.rglob(".*.tmp")):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
