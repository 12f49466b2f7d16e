"""Globs to files, local or of a store."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

import fsspec

_SEGMENT_WITH_GLOB = re.compile(r"[^/]*[*?\[]")


def list_files(pattern: str) -> list[tuple[str, str]]:
    """Expand a glob (`**` crosses folders) to sorted (path, file) pairs.

    `path` can be opened; `file` is relative to the fixed part of the pattern and stands in ids: it
    does not change when the folder moves.

    Raises:
        FileNotFoundError: nothing matches.
        IsADirectoryError: the pattern is a folder.
    """
    found = _stored(pattern) if "://" in pattern else _local(pattern)
    if not found:
        raise FileNotFoundError(
            f"no file matches {pattern}; check the path, `*` stays in one folder, `**` crosses them"
        )
    return sorted(found, key=lambda pair: pair[1])


def fixed_part(pattern: str) -> str:
    """All before the first segment with `*`, `?` or `[`; of a plain path, its folder."""
    first = _SEGMENT_WITH_GLOB.search(pattern)
    return pattern[: first.start()] if first else pattern[: pattern.rfind("/") + 1]


def _local(pattern: str) -> list[tuple[str, str]]:
    if os.path.isdir(pattern):
        raise IsADirectoryError(f"{pattern} is a folder; name its files, as in {pattern}/*.jsonl")
    if os.path.isfile(pattern):  # also a name that holds a bracket
        return [(pattern, os.path.basename(pattern))]
    base = fixed_part(pattern) or "."
    paths = [path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path)]
    return [(path, Path(path).relative_to(base).as_posix()) for path in paths]


def _stored(pattern: str) -> list[tuple[str, str]]:
    store, inner = fsspec.url_to_fs(pattern)
    base = fixed_part(inner)
    if not glob.has_magic(inner):
        paths = [inner] if store.isfile(inner) else []
    else:
        paths = [path for path, info in store.glob(inner, detail=True).items()
                 if info["type"] == "file"]  # fmt: skip
    return [(store.unstrip_protocol(path), path.removeprefix(base)) for path in paths]
