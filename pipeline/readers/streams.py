"""Bytes of a file, local or of a store, uncompressed: the one place that decompresses.

gzip, zstd, bzip2 and xz are told by their first bytes, not by the name, with any number of members
or frames. Text under the name of a packed file is text (downloads unpack without a word); what is
neither is `not_gzip` ...
A stream that is cut off (`truncated_gzip` ...) or corrupt (`damaged_gzip` ...) yields every byte
before the fault, then raises `BrokenStream`; Python's own `gzip` loses up to a buffer of good bytes
before a fault inside the deflate data.

gzip goes through zlib-ng: 700 MB/s of text where zlib does 300, and the same bytes before a fault.
isal does 900, but its state cannot be copied, which `_salvage` needs.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import lzma
from collections.abc import Callable, Iterator
from typing import IO, Literal

import zstandard
from zlib_ng import zlib_ng

from pipeline.ranges import open_file
from pipeline.readers import Piece

Compression = Literal["gzip", "zstd", "bzip2", "xz"]

SUFFIXES: dict[str, Compression] = {
    ".gz": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".bz2": "bzip2",
    ".xz": "xz",
}

PLAIN_BYTES = 1 << 20  # read at once from a plain file
PACKED_BYTES = 1 << 16  # read at once from a compressed one: deflate expands at most 1032 times
ZSTD_BYTES = 1 << 10  # ... from zstd, bzip2, xz, which drop the output of a call that fails
HEAD_BYTES = 1 << 12  # by which text is told
# Of these: text holds none, random bytes 10 %, Chinese in UTF-16 without a mark up to 3 %. English
# in that, unpacked under such a name, is not told from noise.
MAX_CONTROLS = 0.05

_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\f\r\x1b")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class BrokenStream(Exception):
    """A compressed stream is cut off, corrupt or none; what stands before was yielded."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason  # a word of `rejects`: truncated_gzip, damaged_zstd, not_xz ...
        self.detail = detail


class DamagedShardError(OSError):
    """A shard that `spill` made is not as it was written: no fault of the input file."""


def compression(path: str) -> Compression | None:
    with open_file(path) as file:
        return _compression(file.read(6))


def _compression(magic: bytes) -> Compression | None:
    if magic[:2] == b"\x1f\x8b":
        return "gzip"
    if magic[:4] == b"\x28\xb5\x2f\xfd" or magic[1:4] == b"\x2a\x4d\x18":  # one to skip
        return "zstd"
    if magic[:3] == b"BZh" and magic[4:6] in (b"1A", b"\x17\x72"):  # a block, an empty stream
        return "bzip2"
    return "xz" if magic[:6] == b"\xfd7zXZ\0" else None


def chunks(path: str, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The uncompressed bytes, in order; `begin` and `end` count bytes of the file on disk.

    Raises:
        BrokenStream: after the last good byte of a truncated or corrupt stream; at the beginning,
            if the file is not what its name says.
    """
    with open_file(path) as file:
        head = file.read(HEAD_BYTES)
        kind = _compression(head)
        file.seek(begin)
        if fault := _misnamed(path, head):
            if begin == 0:
                raise fault
        elif kind is None:
            yield from _blocks(file, PLAIN_BYTES, end)
        elif kind == "gzip":
            yield from _gunzip(_blocks(file, PACKED_BYTES, end))
        elif kind == "zstd":
            yield from _unzstd(_blocks(file, ZSTD_BYTES, end))
        else:
            yield from _unpack(_blocks(file, ZSTD_BYTES, end), kind)


def misnamed(path: str, name: str) -> BrokenStream | None:
    """What is wrong with a file of this name that is neither packed nor text nor tar."""
    with open_file(path) as file:
        return _misnamed(name, file.read(HEAD_BYTES))


def _misnamed(name: str, head: bytes) -> BrokenStream | None:
    kind = next((kind for suffix, kind in SUFFIXES.items() if name.lower().endswith(suffix)), None)
    if kind is None or _compression(head) or head.startswith(_UTF16) or head[257:262] == b"ustar":
        return None
    if len(head) - len(head.translate(None, _CONTROLS)) <= MAX_CONTROLS * len(head):
        return None
    begins = head[:4].hex(" ")
    return BrokenStream(f"not_{kind}", f"neither {kind} nor text: the file begins with {begins}")


def _damaged(kind: Compression, error: Exception) -> BrokenStream:
    return BrokenStream(f"damaged_{kind}", f"corrupt {kind} data: {error}")


def stream_of(piece: Piece) -> Iterator[bytes]:
    """The bytes of a piece; behind the last spilled one stands the fault of the original stream.

    Raises:
        BrokenStream: as `chunks`.
        DamagedShardError: a spilled shard is not whole.
    """
    try:
        yield from chunks(piece.path, piece.begin, piece.end)
    except BrokenStream as error:
        if not piece.spilled:
            raise
        raise DamagedShardError(
            f"{piece.path}: this shard of {piece.file} is damaged ({error.detail}); "
            "delete it and call again: it is cut anew"
        ) from None
    if piece.broken:
        raise BrokenStream(*piece.broken.split(": ", 1))


def text_at(path: str, offset: int, num_bytes: int) -> str:
    """A range of the uncompressed stream, undecodable bytes as U+FFFD; what there is of it where
    the stream is broken."""
    found = bytearray()
    position = 0
    with contextlib.suppress(BrokenStream):
        for chunk in chunks(path):
            found += chunk[max(offset - position, 0) : max(offset + num_bytes - position, 0)]
            position += len(chunk)
            if position >= offset + num_bytes:
                break
    return found.decode(errors="replace")


def _blocks(file: IO[bytes], size: int, end: int | None) -> Iterator[bytes]:
    left = None if end is None else end - file.tell()
    while left is None or left > 0:
        block = file.read(size if left is None else min(size, left))
        if not block:
            return
        if left is not None:
            left -= len(block)
        yield block


def _gunzip(blocks: Iterator[bytes]) -> Iterator[bytes]:
    member = None  # None: between members
    for block in blocks:
        while block:
            if member is None:
                block = block.lstrip(b"\0")  # zero padding between members, as gzip allows
                if not block:
                    break
                member = zlib_ng.decompressobj(wbits=31)
            before = member.copy()  # 40 KB; a call that fails drops its output
            try:
                data = member.decompress(block)
            except zlib_ng.error as error:
                yield _salvage(before, block)
                raise _damaged("gzip", error) from error
            if data:
                yield data
            block = member.unused_data
            if member.eof:
                member = None
    if member is not None:
        raise BrokenStream("truncated_gzip", "the gzip stream ends before its end-of-stream marker")


def members(path: str, max_bytes: int) -> list[tuple[int, int]] | None:
    """Where each member of a gzip file begins: (byte of the file, byte of the stream); None where
    one holds more than `max_bytes` of the stream.

    Ends at a fault without a word: `chunks` reports it when it comes there.
    """
    found: list[tuple[int, int]] = []
    with open_file(path) as file:
        at = total = 0
        member = None
        for block in _blocks(file, PACKED_BYTES, None):
            while block:
                if member is None:
                    found.append((at, total))
                    member = zlib_ng.decompressobj(wbits=31)
                try:
                    total += len(member.decompress(block))
                except zlib_ng.error:
                    return found
                if total - found[-1][1] > max_bytes:
                    return None
                at += len(block) - len(member.unused_data)
                block = member.unused_data
                if member.eof:
                    member = None
    return found


def _salvage(member: zlib_ng._Decompress, block: bytes) -> bytes:
    """What a failing block yields before the byte at which it fails."""
    good = bytearray()
    for at in range(len(block)):
        try:
            good += member.decompress(block[at : at + 1])
        except zlib_ng.error:
            break
    return bytes(good)


def _unzstd(blocks: Iterator[bytes]) -> Iterator[bytes]:
    context = zstandard.ZstdDecompressor(max_window_size=1 << 31)  # files made with --long=31
    frame = None
    for block in blocks:
        while block:
            if frame is None:
                frame = context.decompressobj()
            try:
                data = frame.decompress(block)
            except zstandard.ZstdError as error:
                raise _damaged("zstd", error) from error
            if data:
                yield data
            block = frame.unused_data
            if frame.eof:
                frame = None
    if frame is not None:
        raise BrokenStream("truncated_zstd", "the zstd stream ends inside a frame")


def _unpack(blocks: Iterator[bytes], kind: Literal["bzip2", "xz"]) -> Iterator[bytes]:
    """45 bytes of bzip2 can hold 45 MB, so what one call gives is bounded too."""
    new: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor] = (
        bz2.BZ2Decompressor if kind == "bzip2" else lambda: lzma.LZMADecompressor(memlimit=1 << 30)
    )
    stream = None
    for block in blocks:
        while block or (stream and not stream.needs_input):
            if stream is None:
                block = block.lstrip(b"\0")  # padding between streams, as xz allows
                if not block:
                    break
                stream = new()
            try:
                data = stream.decompress(block, PLAIN_BYTES)
            except (OSError, EOFError, lzma.LZMAError) as error:
                raise _damaged(kind, error) from error
            if data:
                yield data
            block = b""
            if stream.eof:
                block, stream = stream.unused_data, None
    if stream is not None:
        raise BrokenStream(f"truncated_{kind}", f"the {kind} stream ends before its end")
