"""Files to read, local or of a store: seekable, by large ranges, each of which is tried again.

A web server that knows no ranges is read as one stream: it can go forward, and begin anew where the
connection broke. What must jump back in it (Parquet, zip) is refused with the remedy.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable
from typing import IO, Any

from pipeline import objects
from pipeline.retries import retried

RANGE_BYTES = 8 << 20  # asked of a store at once: a request takes about as long as 5 MB


class ReadError(Exception):
    """A store failed while a file was read; names both. No OSError, which decoders such as zipfile
    take for broken data: records would be rejected that are whole."""


def open_file(path: str, range_bytes: int = RANGE_BYTES) -> IO[bytes]:
    """A seekable binary file; `path` is local or of a store (s3://, gs://, hf://, https://).

    Args:
        range_bytes: the least that is asked for at once; few, where it is read here and there.
    """
    if not objects.is_url(path):
        return open(path, "rb")
    store, inner = objects.open_store(path)
    size = objects.info(path)["size"]
    if size == 0 or _has_ranges(path):
        return io.BufferedReader(Ranges(path, store, inner, size), range_bytes)
    return io.BufferedReader(Stream(path, store, inner), RANGE_BYTES)


@functools.lru_cache(maxsize=1024)
def _has_ranges(path: str) -> bool:
    """All stores have them. A web server is asked for one byte, since few say that they have none;
    the answer is thrown away after its head."""
    if not path.startswith(("http://", "https://")):
        return True
    store, inner = objects.open_store(path)
    headers = {"Range": "bytes=0-0"}
    # A size is given so that it is not asked for.
    ask = functools.partial(store.open, inner, block_size=0, size=1, headers=headers)
    with retried(ask, path) as file:
        return bool(file.r.status == 206)


def _read(call: Callable[[], bytes], path: str) -> bytes:
    try:
        return retried(call, path)
    except OSError as error:
        raise ReadError(str(error)) from error


class Ranges(io.RawIOBase):
    """Bytes of an object, by requests for ranges."""

    def __init__(self, path: str, store: Any, inner: str, size: int) -> None:
        self.path, self.store, self.inner, self.size, self.at = path, store, inner, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.at = max(0, offset + (0, self.at, self.size)[whence])
        return self.at

    def readinto(self, buffer: Any) -> int:
        begin, end = self.at, min(self.at + len(buffer), self.size)
        if begin >= end:
            return 0
        found = _read(lambda: self._range(begin, end), self.path)
        buffer[: len(found)] = found
        self.at += len(found)
        return len(found)

    def _range(self, begin: int, end: int) -> bytes:
        data: bytes = self.store.cat_file(self.inner, start=begin, end=end)
        if len(data) != end - begin:  # a connection may break without a word
            raise ConnectionError(f"{len(data):,} bytes came of {end - begin:,} asked for")
        return data


class Stream(io.RawIOBase):
    """Bytes of a file of a web server without ranges: forwards, in one request."""

    def __init__(self, path: str, store: Any, inner: str) -> None:
        self.path, self.store, self.inner, self.at = path, store, inner, 0
        self.file: IO[bytes] | None = None  # None: not open, or broken
        self.file_at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        to = offset + (self.at if whence == io.SEEK_CUR else 0)
        if whence == io.SEEK_END or 0 < to < self.file_at:
            raise ReadError(
                f"{self.path}: its server sends whole files only, and this one must be read in "
                "pieces; download it and name the local file"
            )
        self.at = to
        return self.at

    def readinto(self, buffer: Any) -> int:
        found = _read(lambda: self._next(len(buffer)), self.path)
        buffer[: len(found)] = found
        self.at += len(found)
        return len(found)

    def _next(self, size: int) -> bytes:
        """From where we are, with a new request where there is none or it fails."""
        try:
            if self.file is None or self.file_at > self.at:
                self._hang_up()
                self.file, self.file_at = self._request(), 0
            while self.file_at < self.at:
                skipped = len(self.file.read(min(self.at - self.file_at, RANGE_BYTES)))
                if skipped == 0:
                    return b""
                self.file_at += skipped
            found = self.file.read(size)
        except BaseException:
            self._hang_up()
            raise
        self.file_at += len(found)
        return found

    def _request(self) -> IO[bytes]:
        file: IO[bytes] = self.store.open(self.inner, "rb", block_size=0, size=1)  # 1: do not ask
        return file

    def _hang_up(self) -> None:
        if self.file is not None:
            with contextlib.suppress(Exception):
                self.file.close()
        self.file = None

    def close(self) -> None:
        self._hang_up()
        super().close()
