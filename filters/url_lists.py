"""Lists of addresses, read once into sorted 64-bit hashes that all processes map from one file.

An entry is a line: a domain (`ab.com` means itself and what is under it), an address with a path
(`ab.com/bad` means `ab.com/bad/x` and `ab.com/bad?x`, never `ab.com/badge`), a whole registry with
a dot before it (`.xxx`), or a word (`*casino*`). Blank lines and lines with # are left out. A file
is a category of its name; a folder in UT1's format has a folder for each category with the files
`domains` and `urls`.

An entry takes ten bytes: five million of them 50 MB on disk, of which a lookup touches a few pages.
Among five million, ten lookups find an entry that is not there with a probability of 3e-12.
"""

from __future__ import annotations

import array
import codecs
import functools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from filters import addresses
from filters.addresses import MAX_PREFIXES, is_registry, parse, without_www
from kernels.cache import cache_bases, cache_folder

UT1_FILES = ("domains", "urls")
UT1_PATTERNS = "expressions"  # regular expressions, a line each: no entries, and dear to match
_PLAIN = re.compile(rb"(?!www)[a-z0-9_-]+(?:\.[a-z0-9_-]+)+")  # already in the form of its key

ListFile = tuple[str, str]  # category, path


class Lists(NamedTuple):
    hashes: npt.NDArray[np.uint64]  # sorted
    categories: npt.NDArray[np.uint16]  # of each, its place in `names`
    names: tuple[str, ...]


def list_files(paths: Sequence[str]) -> tuple[ListFile, ...]:
    """The files of lists, and the category of each.

    Raises:
        ValueError: there is none.
    """
    found: list[ListFile] = []
    for name in paths:
        path = Path(name)
        folders = [path, *sorted(path.iterdir())] if path.is_dir() else []
        files = [(f.name, str(f / kind)) for f in folders for kind in UT1_FILES]
        files = [item for item in files if Path(item[1]).is_file()]
        if path.is_file() and path.name == UT1_PATTERNS:
            raise ValueError(
                f"{path}: files `{UT1_PATTERNS}` of UT1 hold regular expressions, which are not "
                f"read; name its {' and '.join(UT1_FILES)}, or write words as *casino*"
            )
        if path.is_file():
            files = [(path.stem, str(path))]
        if not files:
            raise ValueError(
                f"{path}: no list of addresses; give a file with an entry a line, or a folder "
                f"whose folders hold {' or '.join(UT1_FILES)}, as those of UT1"
            )
        found += files
    return tuple(found)


def key(line: str) -> str:
    """The key of an entry; see filters/addresses.py for those of an address.

    Raises:
        ValueError: it is no entry; says why, and what to write.
    """
    if line.startswith("*") and line.endswith("*") and len(line) > 2:
        word = line[1:-1].lower()
        if line.lower() not in addresses.word_keys("", word):
            raise ValueError(f"{line!r} is not one word: write each by itself, as *casino*")
        return f"*{word}*"
    if re.search(r"\s", line):
        raise ValueError(f"{line!r} has white space inside: write one entry a line")
    host, path = parse(line)
    if line.startswith(".") and host and not path:
        return host
    if host.startswith("["):
        return host + path
    if "." not in host:
        raise ValueError(f"{line!r} is no domain: write a domain as ab.com, a word as *{line}*")
    if path:
        if len(addresses.path_keys(host, path)) == MAX_PREFIXES:
            raise ValueError(f"{line!r} goes deeper than {MAX_PREFIXES - 1} parts: cut it")
        return without_www(host) + path
    if is_registry(host):
        raise ValueError(
            f"{line!r} is where anyone registers: if all of it is meant, write .{host}"
        )
    return without_www(host)


def table(files: tuple[ListFile, ...]) -> Lists:
    """Hashes of all entries; made once for these contents, then mapped.

    Raises:
        ValueError: a line is no entry, or a file has none: names file, line and remedy.
    """
    return _table(files, tuple(os.stat(path).st_mtime_ns for _, path in files))


@functools.lru_cache(maxsize=4)
def _table(files: tuple[ListFile, ...], _changed: tuple[int, ...]) -> Lists:
    names = tuple(dict.fromkeys(category for category, _ in files))
    made_from = xxhash.xxh3_128(repr([category for category, _ in files]).encode())
    for path in (__file__, addresses.__file__, Path(__file__).parent / addresses.SUFFIXES_FILE):
        made_from.update(Path(path).read_bytes())
    for _, path in files:
        with open(path, "rb") as stream:
            while block := stream.read(1 << 20):
                made_from.update(block)
        made_from.update(b"\0")
    base = cache_folder(cache_bases(), "urls") / made_from.hexdigest()
    kept = (base.with_suffix(".hashes.npy"), base.with_suffix(".categories.npy"))
    try:
        hashes, categories = (np.load(path, mmap_mode="r") for path in kept)
    except (OSError, ValueError):  # not there yet, or cut off
        _write(kept, _sorted(files, names))
        hashes, categories = (np.load(path, mmap_mode="r") for path in kept)
    return Lists(hashes, categories, names)


def _sorted(
    files: tuple[ListFile, ...], names: tuple[str, ...]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]:
    hashes, categories = array.array("Q"), array.array("H")
    for category, path in files:
        before = len(hashes)
        hashes.extend(_hashes(path))
        if len(hashes) == before:
            raise ValueError(f"{path}: no entry in it; fill it, or leave it out of `urls`")
        categories.extend([names.index(category)] * (len(hashes) - before))
    values = np.frombuffer(hashes, np.uint64)
    order = np.argsort(values, kind="stable")
    return values[order], np.frombuffer(categories, np.uint16)[order]


def _hashes(path: str) -> Iterator[int]:
    with open(path, "rb") as stream:
        stream.seek(len(codecs.BOM_UTF8) if stream.read(3) == codecs.BOM_UTF8 else 0)
        for number, data in enumerate(stream, 1):
            data = data.strip()
            if not data or data.startswith(b"#"):
                continue
            if _PLAIN.fullmatch(data) and not is_registry(data.decode()):
                yield xxhash.xxh3_64_intdigest(data)
                continue
            try:
                yield xxhash.xxh3_64_intdigest(key(data.decode()).encode())
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}, line {number}: not UTF-8 ({error.reason}); convert the file"
                ) from error
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}, or delete the line") from error


def _write(paths: tuple[Path, Path], arrays: tuple[npt.NDArray[np.generic], ...]) -> None:
    for path, values in zip(paths, arrays, strict=True):
        temporary = path.with_suffix(f".{os.getpid()}")
        with open(temporary, "wb") as stream:
            np.save(stream, values)
        temporary.replace(path)


def find(lists: Lists, keys: Sequence[str]) -> list[tuple[int, str]]:
    """(place in `keys`, category) of each hit."""
    hashes = np.fromiter((xxhash.xxh3_64_intdigest(k.encode()) for k in keys), np.uint64, len(keys))
    first = np.searchsorted(lists.hashes, hashes)
    last = np.searchsorted(lists.hashes, hashes, side="right")
    return [
        (int(at), lists.names[category])
        for at in np.flatnonzero(last > first)
        for category in np.unique(lists.categories[first[at] : last[at]])
    ]
