"""Commit records: a part stands when its record does, which names its fingerprint, counters, and
the size and hash of each of its files."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kernels import stopwatch
from pipeline import publish, store
from pipeline.corpus import CorpusError
from pipeline.files import (
    SUSPECTS,
    State,
    hash_once,
    read_json,
    read_sealed,
    state_of,
    write_sealed,
)

Read = tuple[str, int, str]  # stage, part and fingerprint of a commit record whose files are read
CHANGED = f"is damaged: not the bytes that its commit record names {SUSPECTS}"


def record_path(root: Path, stage: str, part: int) -> Path:
    return root / store.record_name(stage, part)


def record(root: Path, stage: str, part: int, fingerprint: str) -> dict[str, Any] | None:
    """The commit record of a part, if it carries this fingerprint and its files are there, or on
    the store of the corpus."""
    found = _local_record(root, stage, part, fingerprint)
    if found is None and (mirror := store.of(root)) is not None:
        found = publish.committed(mirror, stage, part, fingerprint)
        if found is not None:
            store.keep_record(root, found)
    return found


def _local_record(root: Path, stage: str, part: int, fingerprint: str) -> dict[str, Any] | None:
    found = read_sealed(record_path(root, stage, part))
    if found is None or found["fingerprint"] != fingerprint:
        return None
    try:
        for name, output in found["outputs"].items():
            if "key" not in output and os.stat(f"{root}/{name}").st_size != output["bytes"]:
                return None
    except FileNotFoundError:
        return None
    return found


def once(
    root: Path,
    stage: str,
    part: int,
    fingerprint: str,
    outputs: list[Path],
    work: Callable[[], dict[str, Any]],
    reads: Iterable[Read] = (),
    by_ranges: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Make a part unless it stands: run `work`, which writes `outputs` atomically and returns
    counters, then write the commit record. Returns the record.

    Args:
        reads: whose files the work reads: fetched where they are not here, and checked first.
        by_ranges: if given, the work reads only files whose names begin with one of these, and
            opens them at their `location`: they are not fetched.

    Raises:
        CorpusError: a file to read is damaged; it is made again by the next call.
    """
    found = record(root, stage, part, fingerprint)
    if found is not None:
        return found
    withdraw(root, stage, part)
    ready(root, reads, by_ranges)
    began = stopwatch.spent()
    counters = work()
    seconds, cpu_seconds = stopwatch.since(began)
    return commit(root, stage, part, fingerprint, outputs, counters, seconds, cpu_seconds)


def withdraw(root: Path, stage: str, part: int) -> None:
    """Before a part is made: its commit record must not vouch for other files."""
    record_path(root, stage, part).unlink(missing_ok=True)


def commit(
    root: Path,
    stage: str,
    part: int,
    fingerprint: str,
    outputs: list[Path],
    counters: dict[str, Any],
    seconds: float,
    cpu_seconds: float,
) -> dict[str, Any]:
    """Write the commit record of a part whose `outputs` stand; returns it."""
    found = {
        "stage": stage,
        "part": part,
        "fingerprint": fingerprint,
        "counters": counters,
        "outputs": {
            str(path.relative_to(root)): {"bytes": path.stat().st_size, "xxh3": hash_once(path)}
            for path in outputs
        },
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "host": socket.gethostname(),
        "finished": round(time.time()),
    }
    if (mirror := store.of(root)) is not None:
        found = publish.commit(mirror, found)
    write_sealed(record_path(root, stage, part), found, indent=None)
    return found


def amend(root: Path, record: dict[str, Any], changed: list[Path]) -> None:
    """After files of a part were written again: its record names their new bytes, under the same
    fingerprint, so that they are not made again."""
    for path in changed:
        entry = record["outputs"][str(path.relative_to(root))]
        entry |= {"bytes": path.stat().st_size, "xxh3": hash_once(path)}
    if (mirror := store.of(root)) is not None:
        record = publish.replace(mirror, record, changed)
    write_sealed(record_path(root, record["stage"], record["part"]), record, indent=None)


def ready(root: Path, reads: Iterable[Read], by_ranges: tuple[str, ...] = ()) -> None:
    """Have here, whole, what records name; of those `by_ranges` (see `once`) what is here.

    Every file is hashed once a process before it is read (4 GB/s; what this process made itself is
    known): a flipped bit would otherwise become tokens. Each partition of a join asks for all
    parts: while record and files are the same files, a record is parsed once a process.
    """
    mirror = store.of(root)
    for read in reads:
        if all(map(_is_same, _ready.get((root, read, by_ranges), [_NEVER]))):
            continue
        stage, part, fingerprint = read
        found = record(root, stage, part, fingerprint)
        if found is None:
            raise CorpusError(
                f"{root}: {stage} of part {part} is gone; call again: it is made again"
            )
        files = found["outputs"]
        if by_ranges:
            files = {n: entry for n, entry in files.items() if n.startswith(by_ranges)}
        if by_ranges and mirror is not None:
            files = {n: entry for n, entry in files.items() if (root / n).exists()}
        elif mirror is not None:
            store.fetch(mirror, files)
        for name, entry in files.items():
            path = root / name
            if hash_once(path) == entry["xxh3"]:
                continue
            if mirror is None:
                withdraw(root, stage, part)
                raise CorpusError(f"{path} {CHANGED}; call again: it is made again")
            path.unlink()
            store.fetch(mirror, {name: entry})
        used = [record_path(root, stage, part), *(root / name for name in files)]
        _ready[root, read, by_ranges] = [state_of(path) for path in used]


def location(root: Path, stage: str, part: int, name: str) -> str:
    """Where a file of a part can be opened: here, or on the store of the corpus."""
    if (root / name).exists():
        return str(root / name)
    return store.location(root, name, read_json(record_path(root, stage, part))["outputs"][name])


_NEVER: State = ("", 0, 0)
_ready: dict[tuple[Path, Read, tuple[str, ...]], list[State]] = {}  # record and files of a read


def _is_same(state: State) -> bool:
    try:
        stat = os.stat(state[0])
    except FileNotFoundError:
        return False
    return state[1:] == (stat.st_ino, stat.st_mtime_ns)
