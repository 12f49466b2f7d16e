"""A stream of WARC cut into its records, whole and faulty ones.

fastwarc's own iterator (2.0) stops at the first malformed header and gives a record that the end of
the file cuts as if it were whole; so framed, a bad record costs itself only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pipeline.readers.streams import BrokenStream

MAX_RECORD_BYTES = 256_000_000
MAX_HEADER_BYTES = 1 << 20

_LINE_ENDS = re.compile(rb"[\r\n]*")
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"(?im)^content-length:[ \t]*(\d+)[ \t]*\r?$")
_NEXT = re.compile(rb"\nWARC/\d")


class Raw(NamedTuple):
    offset: int
    num_bytes: int
    data: bytes  # the record with its header; of a faulty one its beginning
    fault: str = ""  # reason: truncated_warc, truncated_gzip ..., bad_warc, too_long
    detail: str = ""


def frame(stream: Iterator[bytes], offset: int = 0) -> Iterator[Raw]:
    """Cut a stream into records; what is no record comes out as a faulty one, up to the next."""
    buffer = _Buffer(stream, offset)
    while buffer.skip_line_ends():
        at = buffer.offset
        header = buffer.find(_HEADER_END, MAX_HEADER_BYTES)
        length = _LENGTH.search(buffer.data, 0, header) if header else None
        if not buffer.data.startswith(b"WARC/") or length is None:
            lost = buffer.take_until(_NEXT)
            if buffer.ended and not buffer.data and header is None:
                reason, detail = buffer.end("the file ends inside the header of a record")
                yield Raw(at, buffer.offset - at, lost, reason, detail)
            else:
                detail = "no WARC record begins here, or its Content-Length is missing"
                yield Raw(at, buffer.offset - at, lost, "bad_warc", detail)
            continue
        assert header is not None
        size = header + int(length[1])
        data = buffer.take(size)
        num_bytes = buffer.offset - at
        if num_bytes < size:
            reason, detail = buffer.end("the file ends here")
            yield Raw(at, num_bytes, data, reason, f"{num_bytes:,} of {size:,} bytes: {detail}")
        elif size > MAX_RECORD_BYTES:
            detail = f"a record of {size:,} bytes; at most {MAX_RECORD_BYTES:,} are read"
            yield Raw(at, size, data, "too_long", detail)
        else:
            yield Raw(at, size, data)
    if buffer.fault and not buffer.reported:
        yield Raw(buffer.offset, 0, b"", *buffer.end(""))


class _Buffer:
    """What was read of a stream and not yet taken; `offset` is that of `data[0]`."""

    def __init__(self, stream: Iterator[bytes], offset: int) -> None:
        self.stream = stream
        self.offset = offset
        self.data = bytearray()
        self.ended = False
        self.fault: BrokenStream | None = None  # in which the stream ended
        self.reported = False

    def end(self, without_fault: str) -> tuple[str, str]:
        """Reason and detail of a record in which the stream ended."""
        if self.fault is None:
            return "truncated_warc", without_fault
        return self.fault.reason, self.fault.detail

    def fill(self) -> bool:
        """One more chunk; False at the end of the stream."""
        try:
            self.data += next(self.stream)
        except StopIteration:
            self.ended = True
        except BrokenStream as error:
            self.ended, self.fault = True, error
        return not self.ended

    def drop(self, size: int) -> None:
        del self.data[:size]
        self.offset += size

    def skip_line_ends(self) -> bool:
        """To the next byte that is no line end; False: there is none."""
        while True:
            ends = _LINE_ENDS.match(self.data)
            self.drop(ends.end() if ends else 0)
            if self.data:
                return True
            if not self.fill():
                return False

    def find(self, pattern: re.Pattern[bytes], limit: int) -> int | None:
        """End of the first match within `limit` bytes."""
        while True:
            match = pattern.search(self.data, 0, limit)
            if match is not None:
                return match.end()
            if len(self.data) >= limit or not self.fill():
                return None

    def take(self, size: int) -> bytes:
        """The next bytes, fewer at the end; above MAX_RECORD_BYTES their beginning."""
        if size > MAX_RECORD_BYTES:
            kept = bytes(self.data[:1000])
            left = size
            while left and (self.data or self.fill()):
                step = min(left, len(self.data))
                self.drop(step)
                left -= step
            self.reported |= bool(left)
            return kept
        while len(self.data) < size and self.fill():
            pass
        self.reported |= len(self.data) < size
        taken = bytes(self.data[:size])
        self.drop(len(taken))
        return taken

    def take_until(self, pattern: re.Pattern[bytes]) -> bytes:
        """Drop all before the next match and its first byte; returns a beginning of it."""
        while len(self.data) < 1000 and self.fill():
            pass
        kept, begin = bytes(self.data[:1000]), self.offset
        while True:
            match = pattern.search(self.data)
            if match is not None:
                self.drop(match.start() + 1)
                return kept[: self.offset - begin]
            if self.ended:
                self.reported = True
                self.drop(len(self.data))
                return kept
            self.drop(max(0, len(self.data) - 16))
            self.fill()
