"""A corpus on an object store. The store holds the truth, a local folder is a cache of it.

    lease/00000003.json                          who writes: lease.py
    begun/00000003.json                          what the writer shares with its workers
    documents/part-00007.<attempt>.parquet       one upload an output, under a name of its own
    stats/<stage>/part-00007.<fingerprint>.json  then its commit record: the first one stands
    manifest/00000003.json                       what the corpus is: every file, its key and hash

No object is ever changed (a lease apart), so nothing that is killed, late or double can spoil one:
an upload that no record names is read by nobody, of two records the first stands, of two manifests
the one with the higher fencing number counts. Stages work on local paths and know nothing of this:
`commits.once` fetches what they read and commits what they made, `corpus.part_paths` fetches what
is asked for. What was fetched is checked against its hash. Here is what readers and workers need;
the writing side is publish.py.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pipeline import disk, objects
from pipeline.files import (
    file_hash,
    is_held,
    part_name,
    read_json,
    read_sealed,
    replacing,
    write_json,
    write_sealed,
)

# Files of a corpus that no commit record names: what the process that prepares it writes itself.
DRIVER_FILES = (
    "corpus.json", "inputs.json", "limit.json", "heldout.json", "heldout/documents.parquet",
    "tokens/*/tokenizer.json", "tokens/*/policy.json", "tokens/*/engine.json",
    "tokens/*/added.json",
    "attached/*", "forgotten/*", "stats/timings.parquet", "stats/prices.json",
)  # fmt: skip
SPILLED = "cut/*/*"  # for the workers of a run; no reader needs them
REQUESTS = 16  # at a time: small files wait for the store, not for the line
STATES = ("begun", "manifest")
STATE = ".store.json"  # in the local folder: url, and the lease under which it is written
MANIFEST = ".manifest.json"  # the files of the last manifest seen

Entry = dict[str, Any]  # key, bytes, xxh3 of a file


class StoreError(ValueError):
    """A store does not hold what its records say; names the object and the remedy."""


@dataclass(frozen=True)
class Mirror:
    """That a local folder stands for a corpus on a store."""

    root: Path
    url: str
    number: int  # the fencing number of who writes; 0: it is only read


# --- which folder stands for which corpus ---------------------------------------------------------


def folder(corpus: str | Path) -> Path:
    """The local folder of a corpus: itself, or of a URL its cache, brought up to date."""
    if not objects.is_url(str(corpus)):
        return Path(corpus)
    root = cache(str(corpus))
    if not _written_here(root):  # who writes brings its folder up to date itself
        pull(root)
    return root


def _written_here(root: Path) -> bool:
    """Whether a process of this machine holds the folder (see corpus.locked), and its lease."""
    mirror = of(root)
    if mirror is None or mirror.number == 0:
        return False
    return is_held(root / ".lock")


def place(root: Path) -> str:
    """Where the corpus of a folder is: its URL, or the folder."""
    mirror = of(root)
    return str(root.resolve()) if mirror is None else mirror.url


def num_bytes(root: Path) -> int:
    """Of all files of a finished corpus on a store; 0 of an unfinished one."""
    path = root / MANIFEST
    return (
        sum(entry["bytes"] for entry in read_json(path)["files"].values()) if path.exists() else 0
    )


def cache(url: str) -> Path:
    """The folder that stands for a corpus on a store; it has the name of the corpus."""
    url = url.rstrip("/")
    base = disk.cache_folder()
    root = base / "corpora" / hashlib.sha256(url.encode()).hexdigest()[:16] / url.rsplit("/", 1)[-1]
    if not (root / STATE).exists():
        write_state(root, url, 0)
    return root


def of(root: Path) -> Mirror | None:
    """The store that a folder stands for, None for a corpus of its own."""
    path = root / STATE
    if not path.exists():
        return None
    state = read_json(path)
    return Mirror(root, state["url"], state["number"])


def write_state(root: Path, url: str, number: int) -> None:
    root.mkdir(parents=True, exist_ok=True)
    write_json(root / STATE, {"url": url, "number": number})


# --- the reader -----------------------------------------------------------------------------------


def pull(root: Path) -> None:
    """Bring the records and the driver's files of a folder up to what its store holds; tables come
    when they are asked for."""
    mirror = of(root)
    assert mirror is not None, root
    manifest, begun = last_state(mirror, "manifest"), last_state(mirror, "begun")
    known = root / MANIFEST
    if manifest and not (known.exists() and read_json(known)["number"] == manifest["number"]):
        for record in manifest["records"]:
            keep_record(root, record)
        _take_driver_files(mirror, manifest["files"])
        write_json(known, {key: manifest[key] for key in ("number", "files")})
    if begun and begun["number"] > (manifest["number"] if manifest else 0):
        _take_driver_files(mirror, begun["files"] | _finished_part(manifest))


def _finished_part(manifest: dict[str, Any] | None) -> dict[str, Entry]:
    """corpus.json of the last manifest: a run that has only begun is not to be seen by readers."""
    files = manifest["files"] if manifest else {}
    return {name: entry for name, entry in files.items() if name == "corpus.json"}


def keep_record(root: Path, record: dict[str, Any]) -> None:
    """Write a record of the store into the local folder; files of another attempt go, so that a
    local file is always the one that its record names."""
    path = root / record_name(record["stage"], record["part"])
    with _alone(root):
        before = read_sealed(path) or {"outputs": {}}
        if before == record:
            return
        for name, entry in record["outputs"].items():
            if before["outputs"].get(name, {}).get("xxh3") != entry["xxh3"]:
                (root / name).unlink(missing_ok=True)
        write_sealed(path, record)


def fetch(mirror: Mirror, files: dict[str, Entry]) -> None:
    """Have these files here; each download is checked against its hash.

    Raises:
        StoreError: an object is gone, or holds other bytes also the second time.
    """
    missing = {
        name: entry
        for name, entry in files.items()
        if not (path := mirror.root / name).exists() or path.stat().st_size != entry["bytes"]
    }
    with ThreadPoolExecutor(REQUESTS) as pool:
        list(pool.map(lambda name: download(mirror, name, missing[name]), missing))


def location(root: Path, name: str, entry: Entry) -> str:
    """Where a file can be opened: here, or on the store."""
    mirror = of(root)
    here = mirror is None or (root / name).exists()
    return str(root / name) if mirror is None or here else f"{mirror.url}/{entry['key']}"


def fetch_table(root: Path, table: str, name: str | None = None) -> None:
    """Have the parts of a table of a finished corpus here, or the one that is named; nothing to do
    for a local corpus."""
    mirror = of(root)
    if mirror is not None and (root / MANIFEST).exists():
        files = _manifest_files(root / MANIFEST, (root / MANIFEST).stat().st_mtime_ns)
        of_table = files.get(table, {})
        fetch(mirror, of_table if name is None else {name: of_table[name]})


def is_here(root: Path, table: str) -> bool:
    """Whether no part of a table would have to be fetched."""
    if of(root) is None or not (root / MANIFEST).exists():
        return True
    files = read_json(root / MANIFEST)["files"]
    return all((root / name).exists() for name in files if name.startswith(f"{table}/"))


def follow(root: Path, number: int) -> None:
    """On a worker: have what the driver shared under this lease."""
    with _alone(root):
        mirror = of(root)
        assert mirror is not None, root
        if mirror.number != number:
            begun = last_state(mirror, "begun")
            assert begun is not None, mirror
            _take_driver_files(mirror, begun["files"])
            write_state(root, mirror.url, number)


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Workers of one machine share a cache: one at a time brings it up to date."""
    with open(root / ".cache.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.lru_cache(maxsize=8)
def _manifest_files(path: Path, version: int) -> dict[str, dict[str, Entry]]:
    """Files of a manifest by their table."""
    del version  # part of the cache's key
    tables: dict[str, dict[str, Entry]] = {}
    for name, entry in read_json(path)["files"].items():
        tables.setdefault(name.rpartition("/")[0], {})[name] = entry
    return tables


def download(mirror: Mirror, name: str, entry: Entry) -> None:
    url = f"{mirror.url}/{entry['key']}"
    for attempt in range(2):
        with replacing(mirror.root / name) as temporary:
            try:
                objects.download(url, temporary)
            except FileNotFoundError:
                raise StoreError(
                    f"{url} is gone, though a record names it; put it back, or make it again with "
                    "`assay prepare --verify`"
                ) from None
            if file_hash(temporary) == entry["xxh3"]:
                return
            if attempt:
                raise StoreError(
                    f"{url} is damaged: not the {entry['bytes']:,} bytes that its record names, "
                    "twice; `assay prepare --verify` makes it again"
                )
            temporary.write_bytes(b"")


def _take_driver_files(mirror: Mirror, files: dict[str, Entry]) -> None:
    """Have exactly these of the driver's files here."""
    for path in matching(mirror.root, DRIVER_FILES):
        name = str(path.relative_to(mirror.root))
        if name not in files or file_hash(path) != files[name]["xxh3"]:
            path.unlink()
    fetch(mirror, {name: entry for name, entry in files.items() if _is_driver_file(name)})


# --- names and states -----------------------------------------------------------------------------


def record_name(stage: str, part: int) -> str:
    return f"stats/{stage}/{part_name(part, 'json')}"


def record_key(stage: str, part: int, fingerprint: str) -> str:
    return attempt_key(record_name(stage, part), fingerprint)


def attempt_key(name: str, attempt: str) -> str:
    """documents/part-00007.parquet -> documents/part-00007.<attempt>.parquet"""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}.{attempt}{dot}{suffix}" if dot else f"{name}.{attempt}"


def matching(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    found = (path for pattern in patterns for path in root.glob(pattern))
    return sorted(path for path in found if not path.name.startswith("."))


def _is_driver_file(name: str) -> bool:
    return any(PurePosixPath(name).match(pattern) for pattern in DRIVER_FILES)


def last_state(mirror: Mirror, kind: str) -> dict[str, Any] | None:
    """The last state of a kind, and its number."""
    names = objects.names(f"{mirror.url}/{kind}")
    if not names:
        return None
    found: dict[str, Any] = json.loads(objects.read(f"{mirror.url}/{kind}/{names[-1]}"))
    return found
