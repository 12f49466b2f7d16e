"""Input files to shards: the light pass before any work. `inputs.json` is its memory.

A shard is one or more pieces of files of one source, about `shard_bytes` of text. Shards are never
recut: files added later get shards of their own, so that only those are processed. A file that
changed or vanished since is an error that names it; `refresh` drops what was made from it. Where a
file lies may change: identity is its source, its name under the glob and its content.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import xxhash

from pipeline import finished
from pipeline.clock import telling
from pipeline.config import ConfigError
from pipeline.files import OUR_DISK, file_hash, read_json, read_sealed, write_json, write_sealed
from pipeline.ranges import ReadError
from pipeline.readers import Piece
from pipeline.readers.files import file_size, file_version, list_files
from pipeline.readers.formats import cut, format_of
from pipeline.readers.spill import DONE, spill
from pipeline.settings import CorpusSettings

Key = tuple[str, str]  # source, file
TELL_SECONDS = 10.0  # between lines on stderr
SHOWN_FILES = 5  # in a message
MAX_PIECES = 4_096  # of one shard: as many tiny files take a worker some seconds


@dataclass(frozen=True, slots=True)
class Shard:
    part: int
    source: str
    pieces: tuple[Piece, ...]
    text_bytes: int  # about: balances shards and scales estimates, no more
    version: str  # hash of what its pieces hold: part of every fingerprint made from it


def input_files(settings: CorpusSettings) -> dict[Key, str]:
    """Where each input file lies now.

    Raises:
        ConfigError: nothing matches, or no reader knows a file.
    """
    found: dict[Key, str] = {}
    for item in settings.inputs:
        try:
            for path, file in list_files(item.files):
                format_of(file)
                found[item.source, file] = path
        except (OSError, ValueError) as error:
            raise ConfigError(f"source {item.source!r}: {error}") from None
    return found


def plan_shards(
    root: Path,
    files: dict[Key, str],
    shard_bytes: int,
    refresh: bool = False,
    max_bad_files: int = 0,
    again: Collection[int] = (),
) -> list[Shard]:
    """Shards of all input files, old ones as they were; writes inputs.json.

    Args:
        max_bad_files: how many files may not be readable; they are left out, and tried again by
            the next call.
        again: parts that a file failed in: whatever was made of them is made again.

    Raises:
        ConfigError: a file changed or vanished since it was prepared, or all files are empty.
        OSError: more than `max_bad_files` files cannot be read.
    """
    path = root / "inputs.json"
    known = read_sealed(path)
    if known is None and path.exists():
        raise ConfigError(
            f"{path} is damaged (the disk, or another program?); put it back, or delete it: shards "
            "are then planned anew, and parts that differ are made again"
        )
    known = known or {"files": [], "shards": []}
    entries = [entry for entry in known["files"] if "error" not in entry]
    shards = [_tried_again(shard, again) for shard in known["shards"]]
    if entries and known["shard_bytes"] != shard_bytes:
        entries, shards = [], []  # recut: every part is made again
    lost = _lost(entries, files)
    if lost and not refresh:
        raise ConfigError(
            "inputs changed since they were prepared:\n"
            + "\n".join(f"  {line}" for line in lost.values())
            + "\nput them back, or call `assay prepare --refresh` to drop what was made from them"
        )
    gone = _parts_to_drop(entries, set(lost))
    entries = [
        entry for entry in entries if _key(entry) not in lost and gone.isdisjoint(entry["parts"])
    ]
    shards = [shard for shard in shards if shard["part"] not in gone]
    entries = [{**entry, "path": files[_key(entry)]} for entry in entries]
    next_part = max((shard["part"] for shard in known["shards"]), default=-1) + 1
    old = {_key(entry) for entry in entries}
    for source in dict.fromkeys(source for source, _ in files):
        new = {key: files[key] for key in files if key[0] == source and key not in old}
        made, added = _cut(root, source, new, shard_bytes, next_part, max_bad_files)
        shards, entries, next_part = shards + made, entries + added, next_part + len(made)
    _tell_of_empty([e["path"] for e in entries if e["bytes"] == 0 and "error" not in e])
    unreadable = [f"{e['path']}: {e['error']}" for e in entries if "error" in e]
    if len(unreadable) > max_bad_files:
        raise ConfigError(too_many(unreadable, max_bad_files))
    if not shards:
        raise ConfigError(f"the inputs hold no record: all {len(files)} files are empty")
    planned = {"shard_bytes": shard_bytes, "files": entries, "shards": shards}
    _cut_again(root, planned, files)
    if planned != known:
        finished.set_aside(root)
        write_sealed(path, planned, indent=None)
    return load_shards(root)


def require_unchanged(root: Path) -> None:
    """After a run: each local input file that is still there is what it was when it was planned;
    else the parts that hold it are made again by the next call.

    Raises:
        ConfigError: some changed meanwhile; names them.
    """
    known = read_sealed(root / "inputs.json")
    assert known is not None, "plan_shards wrote it"
    entries = [
        entry
        for entry in known["files"]
        if "error" not in entry and "://" not in entry["path"] and Path(entry["path"]).exists()
    ]
    changed = _lost(entries, {_key(entry): entry["path"] for entry in entries})
    if not changed:
        return
    again = _parts_to_drop(entries, set(changed))
    known["shards"] = [_tried_again(shard, again) for shard in known["shards"]]
    write_sealed(root / "inputs.json", known, indent=None)
    raise ConfigError(
        "inputs changed while they were read:\n"
        + "\n".join(f"  {line}" for line in changed.values())
        + "\nwhen nobody writes them any more, call `assay prepare --refresh`, which drops what "
        "was made from them"
    )


def _tried_again(shard: dict[str, Any], again: Collection[int]) -> dict[str, Any]:
    """A shard as another version of itself, if it is to be made again."""
    return {**shard, "tries": shard.get("tries", 0) + 1} if shard["part"] in again else shard


def _tell_of_empty(paths: list[str]) -> None:
    if paths:
        shown = ", ".join(paths[:SHOWN_FILES]) + (", ..." if len(paths) > SHOWN_FILES else "")
        print(
            f"{len(paths):,} input files hold no byte (a download that failed?): {shown}",
            file=sys.stderr,
        )


def too_many(bad: list[str], max_bad_files: int) -> str:
    return (
        f"{len(bad)} input files failed, `max_bad_files: {max_bad_files}` allows fewer:\n"
        + "\n".join(f"  {line}" for line in bad)
        + "\nmend them or take them out of `files`, or raise `max_bad_files` in corpus.yaml; what "
        "was made of the others is kept"
    )


def unreadable_files(root: Path) -> list[dict[str, str]]:
    """Source, file and reason of the input files that could not be opened."""
    return [
        {"source": entry["source"], "file": entry["file"], "reason": entry["error"]}
        for entry in read_json(root / "inputs.json")["files"]
        if "error" in entry
    ]


def write_shards(root: Path, files: dict[Key, str], pieces: list[tuple[str, Piece]]) -> None:
    """inputs.json of a sample: each (source, piece) a shard of its own."""
    entries = [
        {"source": source, "path": path, "file": file, "bytes": 0, "hash": "", "parts": []}
        for (source, file), path in files.items()
    ]
    shards = [_shard(root, part, s, [piece]) for part, (s, piece) in enumerate(pieces)]
    planned = {"shard_bytes": 0, "files": entries, "shards": shards}
    write_json(root / "inputs.json", planned, indent=None)


def load_shards(root: Path) -> list[Shard]:
    """The shards that inputs.json lists, by part number."""
    path = root / "inputs.json"
    return list(_load(path, path.stat().st_mtime_ns))


@functools.lru_cache(maxsize=2)
def _load(path: Path, version: int) -> tuple[Shard, ...]:
    del version  # part of the cache's key
    known = read_json(path)
    files = {_key(entry): entry for entry in known["files"]}
    shards = []
    for entry in known["shards"]:
        source = entry["source"]
        content = [[piece, files[source, piece["file"]]["hash"]] for piece in entry["pieces"]]
        content += [entry["tries"]] if "tries" in entry else []
        pieces = tuple(
            _piece(path.parent, piece, files[source, piece["file"]]) for piece in entry["pieces"]
        )
        shards.append(
            Shard(
                part=entry["part"],
                source=source,
                pieces=pieces,
                text_bytes=sum(piece.num_bytes for piece in pieces),
                version=xxhash.xxh3_128_hexdigest(repr(content).encode()),
            )
        )
    return tuple(shards)


def _piece(root: Path, stored: dict[str, Any], entry: dict[str, Any]) -> Piece:
    """A piece as it can be opened; a stored one has a path only where it was spilled."""
    inside = stored.get("path")
    path = str(root / inside) if inside else entry["path"]
    return Piece(**{**stored, "path": path, "room": str(root)})


def _key(entry: dict[str, Any]) -> Key:
    return entry["source"], entry["file"]


def _lost(entries: list[dict[str, Any]], files: dict[Key, str]) -> dict[Key, str]:
    """What to say of each file that is not what it was."""
    lost = {}
    for entry in entries:
        key = _key(entry)
        name = f"{entry['path']} (source {entry['source']})"
        if key not in files:
            lost[key] = f"{name}: no longer among the inputs"
        elif not _same(entry, files[key]):
            size = file_size(files[key])
            lost[key] = f"{name}: changed, {entry['bytes']:,} bytes then, {size:,} now"
    return lost


def _same(entry: dict[str, Any], path: str) -> bool:
    """Same size and state, or, where only the state differs (copied, touched), same bytes."""
    if file_size(path) != entry["bytes"]:
        return False
    return bool(file_version(path) == entry["modified"] or content_hash(path) == entry["hash"])


def _parts_to_drop(entries: list[dict[str, Any]], lost: set[Key]) -> set[int]:
    """Parts that hold a lost file, and all parts of the files that share one with it: what is cut
    anew must not stand twice."""
    gone: set[int] = set()
    files = lost
    while files:
        gone |= {part for entry in entries if _key(entry) in files for part in entry["parts"]}
        files = {
            _key(entry)
            for entry in entries
            if not gone.isdisjoint(entry["parts"]) and not gone.issuperset(entry["parts"])
        }
    return gone


def _cut(
    root: Path,
    source: str,
    files: dict[Key, str],
    shard_bytes: int,
    next_part: int,
    max_bad_files: int,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Shards and file entries of new files of one source, small files gathered."""
    shards: list[dict[str, Any]] = []
    entries: list[dict[str, Any]] = []
    gathered: list[Piece] = []
    size = 0  # of what is gathered
    listed = telling(
        files.items(), lambda n: f"{source}: {n:,} of {len(files):,} input files read", TELL_SECONDS
    )
    for key, path in listed:
        try:
            pieces = cut(path, key[1], shard_bytes)
            if pieces is None:  # a stream too large for one piece: written out once, as shards
                pieces = spill(path, key[1], root / spill_folder(key), shard_bytes)
            state = [file_size(path), file_version(path), content_hash(path)]
        except Exception as error:  # whatever a decoder or a store makes of a bad file
            if max_bad_files == 0 and isinstance(error, ReadError):
                raise ConfigError(str(error)) from error
            if isinstance(error, OSError) and _is_ours(error, root):
                raise
            if max_bad_files == 0 and isinstance(error, OSError):
                raise ConfigError(
                    f"{path} (source {source}) cannot be read: {error.strerror or error}; mend it, "
                    "take it out of `files`, or let some fail with `max_bad_files`"
                ) from error
            if max_bad_files == 0:
                raise
            reason = f"{type(error).__name__}: {error}"
            entries.append({"source": source, "path": path, "file": key[1], "error": reason})
            entries[-1] |= {"bytes": 0, "modified": "", "hash": "", "parts": []}
            continue
        parts = set()
        for piece in pieces:
            full = size + piece.num_bytes > shard_bytes or len(gathered) == MAX_PIECES
            if gathered and full:
                shards.append(_shard(root, next_part + len(shards), source, gathered))
                gathered, size = [], 0
            gathered.append(piece)
            size += piece.num_bytes
            parts.add(next_part + len(shards))
        entries.append(
            {
                "source": source,
                "path": path,
                "file": key[1],
                **dict(zip(("bytes", "modified", "hash"), state, strict=True)),
                "parts": sorted(parts),
            }
        )
    if gathered:
        shards.append(_shard(root, next_part + len(shards), source, gathered))
    return shards, entries


def _is_ours(error: OSError, root: Path) -> bool:
    """Is it the corpus that cannot be written, and not an input file that cannot be read?"""
    return error.errno in OUR_DISK or Path(str(error.filename or "")).is_relative_to(root)


def spill_folder(key: Key) -> Path:
    """Where the shards of a large compressed file stand, in the corpus."""
    return Path("cut") / xxhash.xxh3_64_hexdigest("\0".join(key).encode())


def _shard(root: Path, part: int, source: str, pieces: Iterable[Piece]) -> dict[str, Any]:
    """A shard as inputs.json keeps it: of a piece what is not the default; paths of input files
    stand there once, with the file."""
    stored = []
    for piece in pieces:
        row = {
            name: getattr(piece, name)
            for name, default in _DEFAULTS.items()
            if getattr(piece, name) != default
        }
        path = {"path": str(Path(piece.path).relative_to(root))} if piece.spilled else {}
        stored.append({"file": piece.file, **path, **row})
    return {"part": part, "source": source, "pieces": stored}


# All but what the corpus says of a piece: where the file lies, where there is room.
_DEFAULTS = {f.name: f.default for f in fields(Piece) if f.name not in ("path", "file", "room")}


def _cut_again(root: Path, planned: dict[str, Any], files: dict[Key, str]) -> None:
    """Make the shards of large compressed files that are no longer there."""
    lost = {
        (shard["source"], piece["file"])
        for shard in planned["shards"]
        for piece in shard["pieces"]
        if piece.get("spilled") and not _stands(root / piece["path"])
    }
    for key in sorted(lost):
        spill(files[key], key[1], root / spill_folder(key), planned["shard_bytes"])


def _stands(spilled: Path) -> bool:
    return spilled.exists() and spilled.with_name(DONE).exists()


def content_hash(path: str) -> str:
    """xxh3-128 of a local file (1 to 5 GB/s); of a file in a store, what the store says of it."""
    return file_version(path) if "://" in path else file_hash(Path(path))
