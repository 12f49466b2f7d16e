"""Input files to shards: the light pass before any work. `inputs.json` is its memory.

A shard is one or more pieces of files of one source, about `shard_bytes` of text. Shards are never
recut: files added later get shards of their own, so that only those are processed. A file that
changed or vanished since is an error that names it; `refresh` drops what was made from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import xxhash

from pipeline.config import ConfigError
from pipeline.files import read_json, write_json
from pipeline.readers import Piece
from pipeline.readers.files import file_size, file_version, list_files
from pipeline.readers.formats import cut
from pipeline.readers.spill import spill
from pipeline.settings import CorpusSettings, Input

SAMPLE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Shard:
    part: int
    source: str
    pieces: tuple[Piece, ...]
    text_bytes: int  # about: balances shards and scales estimates, no more
    version: str  # hash of the state of its files: part of every fingerprint made from it


def plan_shards(root: Path, settings: CorpusSettings, refresh: bool = False) -> list[Shard]:
    """Shards of all inputs, old ones as they were; writes inputs.json.

    Raises:
        ConfigError: no file matches, or a file changed or vanished since it was prepared.
    """
    path = root / "inputs.json"
    known: dict[str, Any] = read_json(path) if path.exists() else {"files": [], "shards": []}
    if known["files"] and known["shard_bytes"] != settings.shard_bytes:
        known = {"files": [], "shards": []}  # recut: every part is made again
    present = {
        (item.source, file): (item, location)
        for item in settings.inputs
        for location, file in list_files(item.files)
    }
    lost = _lost(known["files"], present)
    if lost and not refresh:
        raise ConfigError(
            "inputs changed since they were prepared:\n"
            + "\n".join(f"  {line}" for line in lost.values())
            + "\nput them back, or call `assay prepare --refresh` to drop what was made from them"
        )
    gone = {part for entry in known["files"] if _key(entry) in lost for part in entry["parts"]}
    files = [e for e in known["files"] if gone.isdisjoint(e["parts"])]
    shards = [s for s in known["shards"] if s["part"] not in gone]
    next_part = max((s["part"] for s in known["shards"]), default=-1) + 1
    old = {_key(entry) for entry in files}
    for item in settings.inputs:
        new = {k: v for k, v in present.items() if k[0] == item.source and k not in old}
        made, entries = _cut(root, item, new.values(), settings.shard_bytes, next_part)
        shards += made
        files += entries
        next_part += len(made)
    planned = {"shard_bytes": settings.shard_bytes, "files": files, "shards": shards}
    if planned != known:
        write_json(path, planned)
    return load_shards(root)


def load_shards(root: Path) -> list[Shard]:
    """The shards that inputs.json lists, by part number."""
    known = read_json(root / "inputs.json")
    versions = {(e["source"], e["file"]): f"{e['bytes']}:{e['hash']}" for e in known["files"]}
    return [
        Shard(
            part=entry["part"],
            source=entry["source"],
            pieces=tuple(Piece(**piece) for piece in entry["pieces"]),
            text_bytes=entry["text_bytes"],
            version=xxhash.xxh3_64_hexdigest(
                "\n".join(versions[entry["source"], p["file"]] for p in entry["pieces"]).encode()
            ),
        )
        for entry in known["shards"]
    ]


def _key(entry: dict[str, Any]) -> tuple[str, str]:
    return entry["source"], entry["file"]


def _lost(
    files: list[dict[str, Any]], present: dict[tuple[str, str], tuple[Input, str]]
) -> dict[tuple[str, str], str]:
    lost = {}
    for entry in files:
        key = _key(entry)
        if key not in present:
            lost[key] = f"{entry['path']} (source {entry['source']}): no longer among the inputs"
            continue
        state = file_state(present[key][1])
        same = state["bytes"] == entry["bytes"] and (
            state["modified"] == entry["modified"] or sampled_hash(present[key][1]) == entry["hash"]
        )
        if not same:
            lost[key] = (
                f"{entry['path']} (source {entry['source']}): changed, "
                f"{entry['bytes']:,} bytes then, {state['bytes']:,} now"
            )
    return lost


def _cut(
    root: Path,
    item: Input,
    files: Iterable[tuple[Input, str]],
    shard_bytes: int,
    next_part: int,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Shards and file entries of new files of one source, small files gathered."""
    shards: list[dict[str, Any]] = []
    entries: list[dict[str, Any]] = []
    gathered: list[Piece] = []
    weight = 0
    fixed = dict(list_files(item.files))
    for _, location in files:
        state = file_state(location)
        entry = {"source": item.source, "path": location, "file": fixed[location], **state}
        entry |= {"hash": sampled_hash(location), "parts": []}
        entries.append(entry)
        for piece in _pieces(root, item.source, location, fixed[location], shard_bytes):
            if gathered and weight + piece.num_bytes > shard_bytes:
                shards.append(_shard(next_part + len(shards), item.source, gathered, weight))
                gathered, weight = [], 0
            gathered.append(piece)
            weight += piece.num_bytes
            entry["parts"].append(next_part + len(shards))
    if gathered:
        shards.append(_shard(next_part + len(shards), item.source, gathered, weight))
    return shards, entries


def _pieces(root: Path, source: str, path: str, file: str, shard_bytes: int) -> list[Piece]:
    pieces = cut(path, file, shard_bytes)
    if pieces is None:  # a stream too large for one piece: written out once, plain
        folder = root / "cut" / xxhash.xxh3_64_hexdigest(f"{source}\0{file}".encode())
        pieces = spill(path, file, folder, shard_bytes)
    return pieces


def _shard(part: int, source: str, pieces: list[Piece], text_bytes: int) -> dict[str, Any]:
    listed = [asdict(piece) for piece in pieces]
    return {"part": part, "source": source, "text_bytes": text_bytes, "pieces": listed}


def file_state(path: str) -> dict[str, Any]:
    """Size and a mark of change (what its store says of it) of an input file."""
    return {"bytes": file_size(path), "modified": file_version(path)}


def sampled_hash(path: str) -> str:
    """Hash of the first, middle and last 64 KiB: tells a touched file from a changed one."""
    if "://" in path:
        return file_version(path)
    size = file_size(path)
    digest = xxhash.xxh3_128(str(size).encode())
    with open(path, "rb") as file:
        for position in (0, size // 2, max(0, size - SAMPLE_BYTES)):
            file.seek(position)
            digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()
