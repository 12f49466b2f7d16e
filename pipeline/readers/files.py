"""Globs to files, local or of a store."""

from __future__ import annotations

import contextlib
import functools
import glob
import os
import re
from pathlib import Path

from pipeline import objects
from pipeline.files import file_hash
from pipeline.retries import retried


def list_files(pattern: str) -> list[tuple[str, str]]:
    """Expand a glob (`**` crosses folders) to (path, file) pairs, sorted by file.

    `path` can be opened; `file` is relative to the fixed part of the pattern and stands in ids: it
    does not change when the folder moves.

    Raises:
        FileNotFoundError: nothing matches.
        IsADirectoryError: the pattern is a folder.
        PermissionError, OSError: a folder on the way cannot be listed.
    """
    found = _stored(pattern) if "://" in pattern else _local(pattern)
    if not found:
        raise FileNotFoundError(
            f"no file matches {pattern}; check the path, `*` stays in one folder, `**` crosses them"
        )
    return sorted(found, key=lambda pair: pair[1])


def file_size(path: str) -> int:
    """Bytes of the file as it lies on disk."""
    if "://" not in path:
        return os.stat(path).st_size
    return int(objects.info(path)["size"])


def file_version(path: str) -> str:
    """Changes when the file does: what its store says of it (size, date, ETag ...)."""
    if "://" not in path:  # fsspec asks the same, 20 times as slow: 100,000 files count
        state = os.stat(path)
        return f"{state.st_size} {state.st_mtime_ns} {state.st_ino}"
    store, inner = objects.open_store(path)
    if path.startswith(("http://", "https://")):  # of which fsspec hashes the URL alone
        said = objects.info(path)
        return " ".join(str(said.get(key, "")) for key in ("size", "ETag", "Last-Modified"))
    return str(retried(lambda: store.ukey(inner), path))


def content_hash(path: str) -> str:
    """xxh3-128 of a local file (1 to 5 GB/s); of a file in a store, what the store says of it."""
    return file_version(path) if "://" in path else file_hash(Path(path))


def place(path: str) -> str:
    """A file or folder under one name, whatever links or name of its protocol it is called by."""
    if "://" in path:
        store, inner = objects.open_store(path)
        return str(store.unstrip_protocol(inner))
    if os.path.isdir(path):
        return f"file://{_real(path)}"
    folder, name = os.path.split(path)
    return f"file://{_real(folder)}/{name}"


@functools.lru_cache(maxsize=4_096)
def _real(folder: str) -> str:
    return os.path.realpath(folder)


def fixed_part(pattern: str) -> str:
    """The folders before the first segment with `*`, `?` or `[`; of a plain path, its folder."""
    segments = pattern.split("/")
    fixed = [i for i, s in enumerate(segments) if glob.has_magic(_ESCAPED.sub("", s))]
    return _unescaped("/".join([*segments[: fixed[0] if fixed else -1], ""]))


_ESCAPED = re.compile(r"\[([*?[])\]")  # what glob.escape makes of a character of a folder's name


def _unescaped(pattern: str) -> str:
    return _ESCAPED.sub(r"\1", pattern)


def _local(pattern: str) -> list[tuple[str, str]]:
    plain = _unescaped(pattern)
    if os.path.isdir(plain):
        raise IsADirectoryError(f"{plain} is a folder; name its files, as in {plain}/*.jsonl")
    for path in (pattern, plain):  # also a name that holds a bracket
        if _is_file(path):
            return [(path, os.path.basename(path))]
    _all_can_be_listed(pattern)
    paths = [path for path in glob.glob(pattern, recursive=True) if _is_file(path)]
    if "**" in pattern:
        paths = [path for path in paths if not _in_a_loop(os.path.dirname(path))]
    strange = [path for path in paths if not _is_text(path)]
    if strange:
        raise ValueError(f"{strange[0]!r}: the name is not UTF-8 and cannot be kept; rename it")
    return [(path, path.removeprefix(fixed_part(pattern))) for path in paths]


def _all_can_be_listed(pattern: str) -> None:
    """glob passes over a folder that it may not list, and all files below, without a word."""
    segments = pattern.split("/")
    for at, segment in enumerate(segments[1:], 1):
        if segments[at - 1] == "**":
            continue  # its folders were looked at with it
        below = ["**", ""] if segment == "**" else [""]
        for folder in glob.glob("/".join([*segments[:at], *below]), recursive=True):
            if folder.endswith("/lost+found/"):  # root's own, in the top folder of a disk
                continue
            try:
                os.stat(f"{folder}.")  # may its files be opened
                if glob.has_magic(_ESCAPED.sub("", segment)):
                    os.scandir(folder).close()
            except FileNotFoundError:  # it went in the meantime, and its files with it
                continue
            except OSError as error:
                raise type(error)(
                    f"the folder {folder} cannot be read ({error.strerror}), and {pattern} may "
                    "have files there; let it be read (chmod, chown), or name those that can be"
                ) from None


def _is_file(path: str) -> bool:
    """A file, or a link that leads nowhere: it is told of when it is opened, not passed over."""
    return os.path.isfile(path) or (os.path.islink(path) and not os.path.exists(path))


@functools.lru_cache(maxsize=4_096)
def _in_a_loop(folder: str) -> bool:
    """Does the way to a folder pass one folder twice, by a link to a folder above? `**` would give
    each file below 40 times."""
    above, name = os.path.split(folder)
    if not name or above == folder:
        return False
    if _in_a_loop(above):
        return True
    if not os.path.islink(folder):
        return False
    target = os.path.realpath(folder)
    return f"{os.path.realpath(above)}/".startswith(f"{target}/".replace("//", "/"))


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _stored(pattern: str) -> list[tuple[str, str]]:
    store, inner = objects.open_store(pattern)
    paths: list[str] = []
    if glob.has_magic(inner):
        found = retried(lambda: store.glob(inner, detail=True), pattern)
        paths = [path for path, info in found.items() if info["type"] == "file"]
    else:
        with contextlib.suppress(FileNotFoundError):
            paths = [inner] if objects.info(pattern)["type"] == "file" else []
    base = fixed_part(inner)
    return [(store.unstrip_protocol(path), path.removeprefix(base)) for path in paths]
