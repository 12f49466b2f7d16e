"""Which shards there are: the light pass over the input files, before any work.

Shards are never recut: files added later get shards of their own, so that only those are processed.
A file that changed or vanished since is an error that names it; `refresh` drops what was made from
it. Where a file lies may change: identity is its source, its name under the glob and its content.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from pipeline import finished
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.cutting import Cut, File, cut_files, is_cut
from pipeline.files import DAMAGED, read_sealed, write_sealed
from pipeline.forgotten import num_forgotten
from pipeline.readers import Piece
from pipeline.readers.files import content_hash, file_size, file_version
from pipeline.shards import Key, Shard, key_of, load_shards, shard_entry

SHOWN_FILES = 5  # in a message
MAX_PIECES = 4_096  # of one shard: as many tiny files take a worker some seconds


def plan_shards(
    root: Path,
    files: dict[Key, str],
    shard_bytes: int,
    refresh: bool = False,
    max_bad_files: int = 0,
    again: Collection[int] = (),
    workers: int = 1,
) -> list[Shard]:
    """Shards of all input files, old ones as they were; writes inputs.json.

    Args:
        max_bad_files: how many files may not be readable; they are left out, and tried again by
            the next call.
        again: parts that a file failed in: whatever was made of them is made again.
        workers: processes that cut files, at most.

    Raises:
        ConfigError: a file changed or vanished since it was prepared, more than `max_bad_files`
            files cannot be read, or all are empty.
    """
    known = _known(root / "inputs.json")
    entries, shards = _standing(known, files, shard_bytes, refresh, again)
    old = {key_of(entry) for entry in entries}
    new = [(key, path) for key, path in files.items() if key not in old]
    cuts = zip(new, cut_files(root, new, shard_bytes, max_bad_files == 0, workers), strict=True)
    by_source = defaultdict[str, list[tuple[File, Cut]]](list)
    for named, cut in cuts:
        by_source[named[0][0]].append((named, cut))
    next_part = max((shard["part"] for shard in known["shards"]), default=-1) + 1
    for cut_of_source in by_source.values():
        made, added = _gathered(root, cut_of_source, shard_bytes, next_part)
        shards, entries, next_part = shards + made, entries + added, next_part + len(made)
    _tell_of_empty([e["path"] for e in entries if e["bytes"] == 0 and "error" not in e])
    unreadable = [f"{e['path']}: {e['error']}" for e in entries if "error" in e]
    if len(unreadable) > max_bad_files:
        raise ConfigError(too_many(unreadable, max_bad_files))
    if not shards:
        raise ConfigError(f"the inputs hold no record: {counted(len(files), 'file')}, all empty")
    planned = {"shard_bytes": shard_bytes, "files": entries, "shards": shards}
    if planned != known:
        finished.set_aside(root)
        write_sealed(root / "inputs.json", planned, indent=None)
    planned_shards = load_shards(root)
    # Those that hold forgotten documents stay away until they have to be read: see takeout.uncut.
    wanted = [shard for shard in planned_shards if not num_forgotten(root, shard.part)]
    cut_again(root, wanted, files, shard_bytes, workers)
    return planned_shards


Entries = list[dict[str, Any]]  # files or shards, as inputs.json keeps them


def _known(path: Path) -> dict[str, Any]:
    """inputs.json as it stands."""
    known = read_sealed(path)
    if known is None and path.exists():
        raise ConfigError(
            f"{path} {DAMAGED}; put it back, or delete it: shards "
            "are then planned anew, and parts that differ are made again"
        )
    return known or {"files": [], "shards": []}


def _standing(
    known: dict[str, Any],
    files: dict[Key, str],
    shard_bytes: int,
    refresh: bool,
    again: Collection[int],
) -> tuple[Entries, Entries]:
    """Files and shards that stay, and where the files lie now."""
    entries = [entry for entry in known["files"] if "error" not in entry]
    if entries and known["shard_bytes"] != shard_bytes:
        return [], []  # recut: every part is made again
    lost = _lost(entries, files)
    if lost and not refresh:
        raise ConfigError(
            "inputs changed since they were prepared:\n"
            + "\n".join(f"  {line}" for line in lost.values())
            + "\nput them back, or call `assay prepare --refresh` to drop what was made from them"
        )
    gone = _parts_to_drop(entries, set(lost))
    entries = [
        {**entry, "path": files[key_of(entry)]}
        for entry in entries
        if key_of(entry) not in lost and gone.isdisjoint(entry["parts"])
    ]
    shards = [_tried_again(s, again) for s in known["shards"] if s["part"] not in gone]
    return entries, shards


def cut_again(
    root: Path, shards: Iterable[Shard], files: dict[Key, str], shard_bytes: int, workers: int
) -> None:
    """Cut files again that were written out as shards, of which one of these is missing."""
    gone = {
        (shard.source, piece.file)
        for shard in shards
        for piece in shard.pieces
        if piece.spilled and not is_cut(Path(piece.path))
    }
    cut_files(root, [(key, files[key]) for key in sorted(gone)], shard_bytes, True, workers)


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
    changed = _lost(entries, {key_of(entry): entry["path"] for entry in entries})
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
        empty = f"{counted(len(paths), 'input file')} without a byte"
        print(f"{empty} (a download that failed?): {shown}", file=sys.stderr)


def too_many(bad: list[str], max_bad_files: int) -> str:
    return (
        f"{counted(len(bad), 'input file')} failed, "
        f"`max_bad_files: {max_bad_files}` allows fewer:\n"
        + "\n".join(f"  {line}" for line in bad)
        + "\nmend them or take them out of `files`, or raise `max_bad_files` in corpus.yaml; what "
        "was made of the others is kept"
    )


def _lost(entries: Entries, files: dict[Key, str]) -> dict[Key, str]:
    """What to say of each file that is not what it was."""
    lost = {}
    for entry in entries:
        key = key_of(entry)
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


def _parts_to_drop(entries: Entries, lost: set[Key]) -> set[int]:
    """Parts that hold a lost file, and all parts of the files that share one with it: what is cut
    anew must not stand twice."""
    gone: set[int] = set()
    files = lost
    while files:
        gone |= {part for entry in entries if key_of(entry) in files for part in entry["parts"]}
        files = {
            key_of(entry)
            for entry in entries
            if not gone.isdisjoint(entry["parts"]) and not gone.issuperset(entry["parts"])
        }
    return gone


def _gathered(
    root: Path, files: list[tuple[File, Cut]], shard_bytes: int, next_part: int
) -> tuple[Entries, Entries]:
    """Shards and file entries of new files of one source, small files gathered."""
    shards: Entries = []
    entries: Entries = []
    gathered: list[Piece] = []
    size = 0  # of what is gathered
    for ((source, file), path), cut in files:
        parts = set()
        for piece in cut.pieces:
            full = size + piece.num_bytes > shard_bytes or len(gathered) == MAX_PIECES
            if gathered and full:
                shards.append(shard_entry(root, next_part + len(shards), source, gathered))
                gathered, size = [], 0
            gathered.append(piece)
            size += piece.num_bytes
            parts.add(next_part + len(shards))
        state = {"bytes": cut.bytes, "modified": cut.modified, "hash": cut.hash}
        failed = {"error": cut.failed} if cut.failed else {}
        named = {"source": source, "path": path, "file": file}
        entries.append({**named, **failed, **state, "parts": sorted(parts)})
    if gathered:
        shards.append(shard_entry(root, next_part + len(shards), source, gathered))
    return shards, entries
