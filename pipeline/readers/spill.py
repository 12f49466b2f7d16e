"""Large compressed streams to plain shards: one bounded pass, cut at line ends.

A gzip or zstd stream cannot be entered in the middle, so a large one would be one task on one
worker. This costs its uncompressed size on disk and one pass of decompression (about 300 MB/s for
gzip) and buys shards of equal size. Shards appear by atomic rename; a killed pass goes on after the
last finished shard (it decompresses again what it skips).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pipeline.readers import Piece
from pipeline.readers.files import file_version
from pipeline.readers.streams import BrokenStream, chunks


def spill(path: str, file: str, folder: str | Path, shard_bytes: int) -> list[Piece]:
    """Write the stream as `00000.part`, `00001.part` ... into `folder`, one folder a file.

    A shard ends at its first line end at or after `shard_bytes`, the last one where the stream
    ends. Offsets of the records stay those of the original stream. Shards of another state of the
    file, or of another `shard_bytes`, are deleted first.
    """
    folder = Path(folder)
    version, done = folder / "version", folder / "done.json"
    wanted = f"{file_version(path)} {shard_bytes}"
    if not version.exists() or version.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _write(version, [wanted.encode()])
    if not done.exists():
        broken = _write_shards(path, folder, shard_bytes)
        _write(done, [json.dumps({"broken": broken}).encode()])
    broken = json.loads(done.read_text())["broken"]
    shards = _finished(folder)
    pieces, base = [], 0
    for shard in shards:
        why = broken if shard == shards[-1] else ""
        size = shard.stat().st_size
        pieces.append(Piece(str(shard), file, base=base, num_bytes=size, broken=why))
        base += size
    return pieces


def _finished(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.part"))


def _write_shards(path: str, folder: Path, shard_bytes: int) -> str:
    """Write the shards that are missing; return why the stream broke, empty when it is whole."""
    finished = _finished(folder)
    stream = _Stream(chunks(path))
    for shard in finished:
        stream.skip(shard.stat().st_size)
    index = len(finished)
    # A stream that breaks at once still has one (empty) shard: its reject must stand somewhere.
    while stream.fill() or (stream.broken and index == 0):
        _write(folder / f"{index:05d}.part", stream.until_line_end(shard_bytes))
        index += 1
    return stream.broken


class _Stream:
    """Chunks with a rest that was not taken yet, and the fault in which they ended."""

    def __init__(self, source: Iterator[bytes]) -> None:
        self.source = source
        self.rest = b""
        self.broken = ""

    def fill(self) -> bytes:
        """The bytes that come next; empty at the end of the stream."""
        try:
            while not self.rest and not self.broken:
                self.rest = next(self.source)
        except StopIteration:
            pass
        except BrokenStream as error:
            self.broken = str(error)
        return self.rest

    def take(self, size: int) -> bytes:
        data, self.rest = self.rest[:size], self.rest[size:]
        return data

    def skip(self, size: int) -> None:
        while size and self.fill():
            size -= len(self.take(size))

    def until_line_end(self, size: int) -> Iterator[bytes]:
        """All up to the first line end at which at least `size` bytes were given."""
        while data := self.fill():
            end = data.find(b"\n", max(size - 1, 0)) + 1
            yield self.take(end or len(data))
            if end:
                return
            size -= len(data)


def _write(path: Path, data: Iterator[bytes] | list[bytes]) -> None:
    temporary = path.with_suffix(".tmp")
    with open(temporary, "wb") as file:
        file.writelines(data)
    os.replace(temporary, path)
