"""tar as it comes from a stream that may break, with what is lost counted."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from typing import Any, Self

from pipeline.readers.streams import BrokenStream


class _Header(tarfile.TarInfo):
    @classmethod
    def fromtarfile(cls, archive: Any) -> Self:
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as error:  # an end mark and the end of the file are two more
            if type(error).__name__ in ("InvalidHeaderError", "TruncatedHeaderError"):
                archive.num_lost += tarfile.BLOCKSIZE
            raise


class Tar(tarfile.TarFile):
    """Counts the bytes that are no header: tarfile goes on behind them without a word."""

    tarinfo = _Header
    members: list[tarfile.TarInfo]  # which the type stubs leave out
    num_lost = 0


class Stream(io.RawIOBase):
    """Chunks as a file that is read forwards; where they break off, it ends."""

    def __init__(self, source: Iterator[bytes]) -> None:
        self.source = source
        self.rest = b""
        self.fault: BrokenStream | None = None

    def read(self, size: int = -1) -> bytes:
        found = bytearray()
        while len(found) < size and (self.rest or self._fill()):
            taken = self.rest[: size - len(found)]
            self.rest = self.rest[len(taken) :]
            found += taken
        return bytes(found)

    def _fill(self) -> bool:
        try:
            self.rest = next(self.source, b"")
        except BrokenStream as error:
            self.fault = error
        return bool(self.rest)
