"""As much text as asked for, of the real files: copies, each altered so that none repeats another.

In each copy about every seventh word has another letter or another Han character, in places of its
own: of 5-grams two copies share some 10 %, far below any threshold. Copies say nothing about speed
(a tokenizer's cache knows them); they are for memory, disk and joins.

    python benchmarks/copies.py FOLDER GIGABYTES [--single]
"""

from __future__ import annotations

import argparse
import io
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson
from texts import jsonl_files

FILE_BYTES = 200_000_000  # of text in an output file
LETTER_STEP, HAN_STEP = 44, 21  # bytes: about seven words

Bytes = npt.NDArray[np.uint8]


def write_copies(folder: Path, num_bytes: int, single: bool = False) -> list[Path]:
    """`copies-*.jsonl.gz` with `num_bytes` of text in all; with `single` one file of one member."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    sink: _Gzip | None = None
    for line, size in _lines(num_bytes):
        if sink is None or (sink.num_bytes >= FILE_BYTES and not single):
            if sink is not None:
                sink.close()
            paths.append(folder / f"copies-{len(paths):05d}.jsonl.gz")
            sink = _Gzip(paths[-1])
        sink.write(line, size)
    if sink is not None:
        sink.close()
    return paths


class _Gzip:
    """A gzip file of one member at the fastest level, fed by lines."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")
        self.packer = zlib.compressobj(1, wbits=31)
        self.buffer = io.BytesIO()
        self.num_bytes = 0  # of text

    def write(self, line: bytes, size: int) -> None:
        self.buffer.write(line)
        self.num_bytes += size
        if self.buffer.tell() > 1 << 20:
            self.flush()

    def flush(self) -> None:
        self.file.write(self.packer.compress(self.buffer.getvalue()))
        self.buffer = io.BytesIO()

    def close(self) -> None:
        self.flush()
        self.file.write(self.packer.flush())
        self.file.close()


def _lines(num_bytes: int) -> Iterator[tuple[bytes, int]]:
    """JSON lines and the bytes of their text, until that many are out."""
    copy = 0
    while True:
        for path in jsonl_files():
            rows = zlib.decompress(path.read_bytes(), wbits=31).split(b"\n")
            texts = [(orjson.loads(row)["text"] or "").encode() for row in rows if row]
            data = np.frombuffer(b"".join(texts), np.uint8).copy()
            if copy:
                perturb(data, np.random.default_rng([copy, len(data)]))
            end = 0
            for number, text in enumerate(texts):
                begin, end = end, end + len(text)
                if text:
                    row = {"id": f"{copy}-{number}", "text": data[begin:end].tobytes().decode()}
                    yield orjson.dumps(row) + b"\n", len(text)
                num_bytes -= len(text)
                if num_bytes <= 0:
                    return
        copy += 1


def perturb(data: Bytes, random: np.random.Generator) -> None:
    """Alter letters a-z and the last byte of common Han in valid UTF-8, in place."""
    at = _places(len(data), LETTER_STEP, random)
    at = at[(data[at] >= ord("a")) & (data[at] <= ord("z"))]
    turn = random.integers(1, 26, len(at), np.uint8)
    data[at] = (data[at] - ord("a") + turn) % 26 + ord("a")
    at = _places(len(data), HAN_STEP // 3, random)
    at = at[(at >= 2)]
    at = at[(data[at - 2] >= 0xE5) & (data[at - 2] <= 0xE8) & (data[at - 1] < 0xC0)]
    at = at[(data[at] & 0xC0) == 0x80]  # one byte in three of Han text is a last one
    data[at] = 0x80 | (data[at] + random.integers(1, 64, len(at), np.uint8)) & 0x3F


def _places(size: int, step: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """One place in each `step` bytes."""
    begins = np.arange(0, max(size - step, 0), step)
    return begins + random.integers(0, step, len(begins))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/copies.py")
    parser.add_argument("folder", type=Path)
    parser.add_argument("gigabytes", type=float)
    parser.add_argument("--single", action="store_true", help="one file, one gzip member")
    options = parser.parse_args()
    begin = time.perf_counter()
    paths = write_copies(options.folder, int(options.gigabytes * 1e9), options.single)
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(paths)} files, {size / 1e9:.2f} GB, {time.perf_counter() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
