"""zip and tar (plain, or packed with gzip, bzip2, xz, zstd): each member read by its own suffix.

Nothing is unpacked under its own name: a member goes to one temporary file, in the corpus that is
made of it, is read from there by the reader of its suffix, and the next takes its place. So names
such as `../x` are only names, and memory stays that of the member's reader. A record's offset is
`member << 36 | its offset in the member`; members are counted from 0 in the order of the archive,
folders not.

What is no file to read (another archive, an image, an encrypted member, a link) is a reject with
its reason. A broken header of a tar costs what lies before the next good one; a zip whose end is
lost, where its directory stands, is one reject.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import IO, Any, NamedTuple

from pipeline.ranges import open_file
from pipeline.readers import Bad, Piece, Record, is_of_disk, pieces_of, place_of
from pipeline.readers.streams import BrokenStream, chunks, compression, misnamed
from pipeline.readers.tar import Stream, Tar
from pipeline.settings import Input

EXPANSION = 3  # bytes of text in a byte of a compressed tar, about
MEMBER_BITS = 36  # 64 GB in a member, 134 million members in an archive
MAX_MEMBER_BYTES = 16 << 30  # on the disk for temporary files
MAX_RATIO = 200  # of a zip's member above FREE_BYTES: text reaches 50, deflate 1,032 (for bombs)
FREE_BYTES = 16_000_000
COPY_BYTES = 1 << 20

# What zipfile and tarfile raise at broken data, with OSError (see `is_of_disk`).
FAULTS = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError,
    NotImplementedError, RuntimeError,
)  # fmt: skip

Read = Callable[[Piece, Input, str], Iterator[Record | Bad]]
ReaderOf = Callable[[str], Read]  # by a name; raises ValueError: no reader, and why


class Member(NamedTuple):
    name: str
    num_bytes: int
    open: Callable[[], IO[bytes]]
    fault: tuple[str, str] | None = None  # reason, detail


class MemberFault(Exception):
    """A member ends early or is corrupt: (reason, detail)."""


def cut_tar(path: str, file: str, size: int, shard_bytes: int) -> list[Piece]:
    text = size * (EXPANSION if compression(path) else 1)
    return [Piece(path, file, num_bytes=text)] if size else []


def cut_zip(path: str, file: str, size: int, shard_bytes: int) -> list[Piece]:
    """Ranges of members; a file without a readable directory is one piece, a reject."""
    try:
        with open_file(path) as stream:
            sizes = [info.file_size for info in _files(zipfile.ZipFile(stream))]
    except (*FAULTS, OSError) as error:
        if is_of_disk(error):
            raise
        return [Piece(path, file, num_bytes=size)] if size else []
    return pieces_of(path, file, sizes, shard_bytes)


def read_zip(
    piece: Piece, source: Input, extractor: str, reader_of: ReaderOf
) -> Iterator[Record | Bad]:
    with open_file(piece.path) as stream:
        try:
            archive = zipfile.ZipFile(stream)
        except (*FAULTS, OSError) as error:
            if is_of_disk(error):
                raise
            detail = f"{piece.file}: not readable: {error}"
            yield Bad(place_of(piece), piece.num_bytes, "bad_zip", detail)
            return
        infos = islice(enumerate(_files(archive)), piece.begin, piece.end)
        members = ((index, _zip_member(archive, info)) for index, info in infos)
        yield from _records(members, source, extractor, reader_of, piece.room)


def read_tar(
    piece: Piece, source: Input, extractor: str, reader_of: ReaderOf
) -> Iterator[Record | Bad]:
    members = enumerate(_tar_members(piece))
    yield from _records(members, source, extractor, reader_of, piece.room)


def _records(
    members: Iterator[tuple[int, Member]],
    source: Input,
    extractor: str,
    reader_of: ReaderOf,
    folder: str,
) -> Iterator[Record | Bad]:
    # Named like all that a killed attempt leaves: see files.remove_temporaries.
    with tempfile.NamedTemporaryFile(dir=folder or None, prefix=".member-", suffix=".tmp") as room:
        for index, member in members:
            base = index << MEMBER_BITS
            try:
                read = _reader(member, reader_of)
                copied = _copy(member, room)
            except MemberFault as error:
                reason, detail = error.args
                yield Bad(base, member.num_bytes, reason, f"{member.name}: {detail}")
                continue
            for item in read(Piece(room.name, member.name, num_bytes=copied), source, extractor):
                if item.offset >> MEMBER_BITS > 0:
                    detail = f"{member.name}: what lies behind 64 GB, unpacked, is not read"
                    yield Bad(base + (1 << MEMBER_BITS) - 2, 0, "too_long", detail)
                    break
                yield _placed(item, base, member.name)


def _placed(item: Record | Bad, base: int, name: str) -> Record | Bad:
    """A member's record as one of the archive: with its place there and the member's name."""
    if isinstance(item, Bad):
        return replace(item, offset=base + item.offset, detail=f"{name}: {item.detail}")
    return replace(item, offset=base + item.offset, fields={"source_id": name, **item.fields})


def _reader(member: Member, reader_of: ReaderOf) -> Read:
    """The reader of a member.

    Raises:
        MemberFault: it is not to be read.
    """
    if member.fault:
        raise MemberFault(*member.fault)
    if member.name.startswith("__MACOSX/") or member.name.rpartition("/")[2].startswith("._"):
        raise MemberFault("no_reader", "what macOS adds to an archive, no text")
    if member.num_bytes > MAX_MEMBER_BYTES:
        detail = f"{member.num_bytes:,} bytes; at most {MAX_MEMBER_BYTES:,} are read of one member"
        raise MemberFault("too_long", detail)
    try:
        return reader_of(member.name)
    except ValueError as error:
        raise MemberFault("no_reader", str(error).removeprefix(f"{member.name}: ")) from None


def _copy(member: Member, room: Any) -> int:
    """The member's bytes into `room`, their checksum compared; returns how many.

    Raises:
        MemberFault: they are not those that the archive speaks of.
    """
    room.seek(0)
    room.truncate()
    for block in _blocks(member):
        room.write(block)
    room.flush()
    copied: int = room.tell()
    if copied < member.num_bytes:
        detail = f"{copied:,} of {member.num_bytes:,} bytes: the archive ends here"
        raise MemberFault("bad_member", detail)
    if fault := misnamed(room.name, member.name):
        raise MemberFault(fault.reason, fault.detail)
    return copied


def _blocks(member: Member) -> Iterator[bytes]:
    try:
        with member.open() as stream:
            while block := stream.read(COPY_BYTES):
                yield block
    except BrokenStream as error:
        raise MemberFault(error.reason, error.detail) from error
    except (*FAULTS, OSError) as error:
        if is_of_disk(error):
            raise
        raise MemberFault("bad_member", f"not readable: {error}") from error


def _files(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    return (info for info in archive.infolist() if not info.is_dir())


def _zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Member:
    fault = None
    if info.flag_bits & 1:
        fault = ("encrypted", "an encrypted member, whose password is not known")
    elif info.file_size > max(FREE_BYTES, MAX_RATIO * info.compress_size):
        detail = f"{info.file_size:,} bytes packed into {info.compress_size:,}: a zip bomb?"
        fault = ("zip_bomb", detail)
    return Member(_zip_name(info), info.file_size, lambda: archive.open(info), fault)


def _zip_name(info: zipfile.ZipInfo) -> str:
    """The name; where zipfile took it for DOS Latin, decoded again: Chinese tools write GBK."""
    utf8 = info.flag_bits & 0x800 or info.filename.isascii()
    return info.filename if utf8 else _decoded(info.filename.encode("cp437"))


def _decoded(name: bytes) -> str:
    """A name is too short to guess its encoding from: UTF-8, else that of Chinese systems."""
    for codec in ("utf-8", "gb18030"):
        with contextlib.suppress(UnicodeDecodeError):
            return name.decode(codec)
    return name.decode("cp437")


def _tar_members(piece: Piece) -> Iterator[Member]:
    """Members as the stream brings them; what is not readable between them is a faulty one."""
    stream = Stream(chunks(piece.path))

    def lost(reason: str, detail: str, num_bytes: int = 0) -> Member:
        return Member(piece.file, num_bytes, io.BytesIO, (reason, detail))

    num_lost = 0
    try:
        # ignore_zeros: past the end mark of a tar, as of two that were joined with `cat`, and past
        # blocks that are no header.
        with Tar.open(fileobj=stream, mode="r|", ignore_zeros=True) as archive:
            while (info := archive.next()) is not None:
                archive.members.clear()  # tarfile keeps them all
                if archive.num_lost > num_lost:
                    size, num_lost = archive.num_lost - num_lost, archive.num_lost
                    yield lost("bad_tar", f"no header before {info.name!r}", size)
                if not info.isdir():
                    yield _tar_member(archive, info)
            num_lost = archive.num_lost - num_lost
    except FAULTS as error:
        if stream.fault is None:
            yield lost("bad_tar", f"not readable: {error}")
            return
    if stream.fault is not None:
        yield lost(stream.fault.reason, stream.fault.detail)
    elif num_lost:
        yield lost("bad_tar", "no header in the last bytes of the file", num_lost)


def _tar_member(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Member:
    def opened() -> IO[bytes]:
        found = archive.extractfile(info)
        assert found is not None
        return found

    name = _decoded(info.name.encode("utf-8", "surrogateescape"))
    if not info.isreg():
        return Member(name, 0, opened, ("no_reader", "a link or a device, not a file"))
    return Member(name, info.size, opened)
