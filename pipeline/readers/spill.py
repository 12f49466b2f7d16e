"""Large compressed streams to shards: one bounded pass, cut at the borders of records.

A gzip or zstd stream cannot be entered in the middle, so a large one would be one task on one
worker. The pass costs 6 ms of CPU a MB of text (inflate 2.5, compress 3), the two in threads beside
each other, and a third of the text on disk, and buys shards of equal size. They are zstd at level 1
with a checksum: written plain, a corpus would take half as much disk again as it does.

A shard is named by where it lies in the stream and appears by atomic rename, so a killed pass goes
on after the last finished shard (it inflates again what it skips).
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain, takewhile
from pathlib import Path

import zstandard

from pipeline.files import file_hash, read_sealed, replacing, write_sealed
from pipeline.readers import Piece
from pipeline.readers.files import file_version
from pipeline.readers.formats import READERS, format_of
from pipeline.readers.streams import BrokenStream, chunks

LEVEL = 1  # of zstd: 330 MB/s, a third of the text; -5 would be 400 MB/s and nearly a half
DONE = "done.json"  # the record of a finished cut: end of the stream, hash of each shard
REPORT_SECONDS = 5.0


def spill(path: str, file: str, folder: str | Path, shard_bytes: int) -> list[Piece]:
    """Write the stream as shards into `folder`, one folder a file, unless they stand.

    A shard ends at the first border at which it holds `shard_bytes`, the last one where the stream
    ends. Offsets of the records stay those of the original stream. Shards of another state of the
    file, or of another `shard_bytes`, are deleted first.
    """
    folder = Path(folder)
    version, done = folder / "version", folder / DONE
    wanted = f"{file_version(path)} {shard_bytes} zstd"
    if not version.exists() or version.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _write(version, wanted)
    end = _end(folder)
    known = read_sealed(done)
    if known is None or known["end"] != end:
        broken = _write_shards(path, file, folder, end, shard_bytes)
        files = {shard.name: file_hash(shard) for shard, _, _ in _finished(folder)}
        known = {"end": _end(folder), "broken": broken, "files": files}
        write_sealed(done, known)
    broken, shards = known["broken"], _finished(folder)
    return [
        Piece(
            path=str(shard),
            file=file,
            base=begin,
            num_bytes=end - begin,
            spilled=True,
            broken=broken if shard == shards[-1][0] else "",
        )
        for shard, begin, end in shards
    ]


def _finished(folder: Path) -> list[tuple[Path, int, int]]:
    """Shards from the beginning of the stream to the first that is missing: path, begin, end."""
    found: list[tuple[Path, int, int]] = []
    for path in sorted(folder.glob("*-*.zst")):
        begin, end = map(int, path.stem.split("-"))
        if begin != (found[-1][2] if found else 0):
            break
        found.append((path, begin, end))
    return found


def _end(folder: Path) -> int:
    return max((end for _, _, end in _finished(folder)), default=0)


def _write_shards(path: str, file: str, folder: Path, begin: int, shard_bytes: int) -> str:
    """Write the shards from byte `begin` on; return why the stream broke, or an empty string."""
    borders = READERS[format_of(file)].borders
    assert borders is not None, f"{file}: `cut` says that it is to be spilled"
    marked = borders(_from(begin, _reported(path)), shard_bytes)
    try:
        for first in marked:
            if first is not None:
                shard = takewhile(lambda data: data is not None, chain([first], marked))
                begin, broken = _write_shard(folder, begin, shard)
                if broken:
                    return broken
    except BrokenStream as error:
        if begin == 0:  # a stream that breaks at once: its reject must stand somewhere
            _write_shard(folder, 0, [])
        return str(error)
    return ""


def _write_shard(folder: Path, begin: int, data: Iterable[bytes | None]) -> tuple[int, str]:
    """Write a shard; returns its end, and why the stream broke inside."""
    end, broken = begin, ""
    # threads=1: in a thread of its own; the bytes do not depend on when it gets its turn.
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, threads=1)
    unnamed = folder / "next.zst"
    with (
        replacing(unnamed) as temporary,
        open(temporary, "wb") as file,
        compressor.stream_writer(file) as writer,
    ):
        try:
            for chunk in data:
                assert chunk is not None
                end += len(chunk)
                writer.write(chunk)
        except BrokenStream as error:
            broken = str(error)
    os.replace(unnamed, folder / f"{begin:015d}-{end:015d}.zst")
    return end, broken


def _from(begin: int, stream: Iterator[bytes]) -> Iterator[bytes]:
    """A stream without its first `begin` bytes."""
    for chunk in stream:
        if begin < len(chunk):
            yield chunk[begin:] if begin else chunk
        begin = max(0, begin - len(chunk))


def _reported(path: str) -> Iterator[bytes]:
    """The stream of a file; says now and then how far it is."""
    began = said = time.monotonic()
    size = 0
    for chunk in chunks(path):
        size += len(chunk)
        now = time.monotonic()
        if now - said > REPORT_SECONDS:
            said = now
            rate = size / 1e6 / (now - began)
            print(f"cutting {path}: {size / 1e6:,.0f} MB of text, {rate:.0f} MB/s", file=sys.stderr)
        yield chunk


def _write(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text)
