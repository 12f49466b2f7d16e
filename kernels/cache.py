"""What takes long to make and is the same in every process, kept between them in a cache folder.

The folder is the first one that can be written: NUMBA_CACHE_DIR, the user's cache folder, the
temporary folder (read-only installs, workers without a home). A name holds the hash of all that its
content was made from, so nothing there is ever out of date, and `assay/` may be deleted any time.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

SEAL_BYTES = 16  # xxh3-128 of the rest: a damaged file is made again


def cache_bases() -> list[Path]:
    """Where caches may live, best first."""
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    bases = [os.environ.get("NUMBA_CACHE_DIR"), user, tempfile.gettempdir()]
    return [Path(base) for base in bases if base]


def cache_folder(bases: Iterable[Path], name: str) -> Path:
    """`assay/<name>` under the first of `bases` in which a file can be made.

    Raises:
        OSError: none of them can be written.
    """
    tried = []
    for base in bases:
        folder = base / "assay" / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError as error:
            tried.append(f"{folder}: {error.strerror}")
    raise OSError(
        f"no folder for compiled kernels can be written ({'; '.join(tried)}); "
        "set NUMBA_CACHE_DIR to one that can"
    )


def kept(kind: str, made_from: bytes, make: Callable[[], bytes]) -> bytes:
    """What `make` makes of `made_from`, read from a file after the first time."""
    found = find_kept(kind, made_from)
    if found is not None:
        return found
    made = make()
    with contextlib.suppress(OSError):  # a full disk, or no folder at all: the next one makes it
        path = cache_folder(cache_bases(), kind) / _name(made_from)
        temporary = path.with_suffix(f".{os.getpid()}")
        try:
            temporary.write_bytes(xxhash.xxh3_128_digest(made) + made)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    return made


def find_kept(kind: str, made_from: bytes) -> bytes | None:
    """What `kept` would read; None where it would make it."""
    for base in cache_bases():
        with contextlib.suppress(OSError):
            data = (base / "assay" / kind / _name(made_from)).read_bytes()
            if xxhash.xxh3_128_digest(data[SEAL_BYTES:]) == data[:SEAL_BYTES]:
                return data[SEAL_BYTES:]
    return None


def _name(made_from: bytes) -> str:
    return xxhash.xxh3_128_hexdigest(made_from)


def kept_arrays(
    sources: Iterable[str | Path], make: Callable[[], tuple[npt.NDArray[Any], ...]]
) -> list[npt.NDArray[Any]]:
    """Arrays that some files (of code and data) and Unicode's tables make."""

    def pack() -> bytes:
        packed = io.BytesIO()
        np.savez(packed, *make())
        return packed.getvalue()

    read = [Path(source).read_bytes() for source in sources]
    versions = f"{unicodedata.unidata_version} {np.__version__}".encode()
    data = kept("tables", b"\0".join([versions, *read]), pack)
    with np.load(io.BytesIO(data)) as arrays:
        return list(arrays.values())
