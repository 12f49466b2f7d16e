"""A corpus folder: its manifest, its parts, its commit records, its lock."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.files import file_hash, read_json, write_json
from pipeline.schema import FORMAT_VERSION


class CorpusError(ValueError):
    """A corpus folder cannot be used; the message names the folder and the remedy."""


def manifest(root: Path) -> dict[str, Any]:
    """corpus.json of a finished corpus.

    Raises:
        CorpusError: not a corpus, not finished, or of another format version.
    """
    path = root / "corpus.json"
    if not path.exists():
        unfinished = (root / "inputs.json").exists()
        what = "an unfinished corpus" if unfinished else "not a corpus"
        raise CorpusError(f"{root}: {what} (no corpus.json); run `assay prepare` for it first")
    found: dict[str, Any] = read_json(path)
    if found["format"] != FORMAT_VERSION:
        raise CorpusError(
            f"{root}: format {found['format']}, this version of assay reads {FORMAT_VERSION}; "
            "run `assay prepare` again with another `output`"
        )
    return found


def part_name(part: int, suffix: str = "parquet") -> str:
    return f"part-{part:05d}.{suffix}"


def part_paths(root: Path, table: str) -> list[Path]:
    """Files of a table (`documents`, `signals/gopher`, `tokens/<hash>` ...) by part number."""
    return sorted(path for path in (root / table).glob("part-*") if path.suffix != ".json")


def part_number(path: Path) -> int:
    return int(path.name.split(".")[0].removeprefix("part-"))


# --- commit records -------------------------------------------------------------------------------


def record_path(root: Path, stage: str, part: int) -> Path:
    return root / "stats" / stage / part_name(part, "json")


def record(root: Path, stage: str, part: int, fingerprint: str) -> dict[str, Any] | None:
    """The commit record of a part, if it carries this fingerprint and its files are there."""
    path = record_path(root, stage, part)
    if not path.exists():
        return None
    found: dict[str, Any] = read_json(path)
    if found["fingerprint"] != fingerprint:
        return None
    for name, output in found["outputs"].items():
        file = root / name
        if not file.exists() or file.stat().st_size != output["bytes"]:
            return None
    return found


def once(
    root: Path,
    stage: str,
    part: int,
    fingerprint: str,
    outputs: list[Path],
    work: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """Make a part unless it stands: run `work`, which writes `outputs` atomically and returns
    counters, then write the commit record. Returns the record."""
    found = record(root, stage, part, fingerprint)
    if found is not None:
        return found
    withdraw(root, stage, part)
    began, cpu_began = time.perf_counter(), time.process_time()
    counters = work()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
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
            str(path.relative_to(root)): {"bytes": path.stat().st_size, "xxh3": file_hash(path)}
            for path in outputs
        },
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "host": socket.gethostname(),
        "finished": round(time.time()),
    }
    write_json(record_path(root, stage, part), found)
    return found


def damaged(root: Path) -> list[str]:
    """Files whose bytes are not those that their commit record names; their records are deleted,
    so that the next run makes them again."""
    found = []
    for path in sorted((root / "stats").rglob("part-*.json")):
        outputs = read_json(path)["outputs"]
        bad = [name for name, output in outputs.items() if not _is(root / name, output)]
        if bad:
            path.unlink()
        found += bad
    return found


def _is(path: Path, output: dict[str, Any]) -> bool:
    return path.exists() and file_hash(path) == output["xxh3"]


# --- one writer at a time -------------------------------------------------------------------------


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold a folder, of a corpus or of a training run, for writing.

    Raises:
        CorpusError: another process holds it; names its process id.
    """
    root.mkdir(parents=True, exist_ok=True)
    with open(root / ".lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CorpusError(
                f"{root}: another assay process writes here (process {file.read().strip()}); "
                "wait for it, or stop it and call again: what it finished is kept"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
