"""inputs.json: which pieces of which input files each shard holds.

A shard is one or more pieces of files of one source, about `shard_bytes` of text. planning.py
decides, cutting.py cuts, every stage reads.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import xxhash

from pipeline.files import read_json, write_json
from pipeline.readers import Piece

Key = tuple[str, str]  # source, file


@dataclass(frozen=True, slots=True)
class Shard:
    part: int
    source: str
    pieces: tuple[Piece, ...]
    text_bytes: int  # about: balances shards and scales estimates, no more
    version: str  # hash of what its pieces hold: part of every fingerprint made from it


def load_shards(root: Path) -> list[Shard]:
    """The shards that inputs.json lists, by part number."""
    path = root / "inputs.json"
    return list(_load(path, path.stat().st_mtime_ns))


@functools.lru_cache(maxsize=2)
def _load(path: Path, version: int) -> tuple[Shard, ...]:
    del version  # part of the cache's key
    known = read_json(path)
    files = {key_of(entry): entry for entry in known["files"]}
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


def write_shards(root: Path, files: dict[Key, str], pieces: list[tuple[str, Piece]]) -> None:
    """inputs.json of a sample: each (source, piece) a shard of its own."""
    entries = [
        {"source": source, "path": path, "file": file, "bytes": 0, "hash": "", "parts": []}
        for (source, file), path in files.items()
    ]
    shards = [shard_entry(root, part, s, [piece]) for part, (s, piece) in enumerate(pieces)]
    planned = {"shard_bytes": 0, "files": entries, "shards": shards}
    write_json(root / "inputs.json", planned, indent=None)


def shard_entry(root: Path, part: int, source: str, pieces: Iterable[Piece]) -> dict[str, Any]:
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


def unreadable_files(root: Path) -> list[dict[str, str]]:
    """Source, file and reason of the input files that could not be opened."""
    return [
        {"source": entry["source"], "file": entry["file"], "reason": entry["error"]}
        for entry in read_json(root / "inputs.json")["files"]
        if "error" in entry
    ]


def spill_folder(key: Key) -> Path:
    """Where the shards of a large compressed file stand, in the corpus."""
    return Path("cut") / xxhash.xxh3_64_hexdigest("\0".join(key).encode())


def key_of(entry: dict[str, Any]) -> Key:
    return entry["source"], entry["file"]
