"""Near duplicates over several corpora: their parts as the parts of one.

What `prepare` keeps of each corpus (band keys, sketches, documents) stands, by links, in one
folder, part after part, and the joins of transforms/near_join.py run over it as over one corpus. So
nothing is signed again, and the pairs are those of a corpus that has all inputs. What is left in
the end are `pairs`, `clusters` and a corpus.json that names the threshold: what pipeline/unique.py
reads. It is kept in the first corpus, named by what it was made of: arms of a study share it.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pipeline import copy_index, copy_index_parts, forks, signed
from pipeline.clock import telling
from pipeline.copy_index import Index
from pipeline.corpus import CorpusError, manifest
from pipeline.dedup_settings import Near
from pipeline.files import (
    file_hash,
    hash_once,
    part_name,
    read_sealed,
    write_sealed,
)
from pipeline.fingerprint import fingerprint
from pipeline.finished import home
from pipeline.schema import FORMAT_VERSION
from pipeline.transforms import contraction, near, near_join

FOLDER = "linked"
TELL_SECONDS = 10.0  # between lines on stderr
Part = tuple[Path, int]  # a corpus, and the number of a part in it
Result = TypeVar("Result")


def linked(roots: Sequence[Path], indexes: Sequence[Index] = ()) -> Path:
    """The folder that holds the pairs and clusters of all these corpora, and theirs with what
    indexes have; made unless it stands.

    Raises:
        ConfigError: near duplicates were not prepared alike.
        CorpusError: a file of a corpus is damaged, or is changing.
    """
    folder = folder_of(roots, indexes)
    if stands(folder):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    settings = Near(**manifest(roots[0])["settings"]["near"])
    parts = [(root, part) for root in roots for part in signed.parts_of(root)]
    groups, indexed = copy_index_parts.groups_of(indexes, len(parts))
    num = near_join.partitions(
        sum(manifest(root)["stages"]["ingest"]["totals"]["bytes"] for root in roots)
        + sum(group.text_bytes for index in indexes for group in index.groups)
    )
    with attempt(folder) as at:
        numbers = list(range(len(parts) + len(indexed)))
        each(functools.partial(link, at, signed.part_files), list(enumerate(parts)), "linked")
        each(functools.partial(copy_index_parts.unpack, at), indexed, "unpacked")
        for number, (index, place, there) in enumerate(groups):
            planted = near_join.forest_output(at, num + number)
            copy_index_parts.plant(planted, index, place, there)
        known = [there for _, _, there in groups]
        forest = functools.partial(near_join.forest, at, settings, numbers, num=num, known=known)
        each(forest, list(range(num)), "joined")
        contraction.unite(at, num + len(groups), each)
        if groups:
            copy_index_parts.leave_out_known(at, len(parts))
        shingle = functools.partial(near.shingle, at, settings, partitions=num)
        each(shingle, numbers, "shingled")
        verify = functools.partial(near_join.verify, at, settings, numbers, num=num)
        each(verify, list(range(num)), "verified")
        seal(at, settings)
    return folder


def seal(at: Path, settings: Near) -> None:
    """What is left when all is done: the tables that readers ask, and what vouches for them."""
    for links in ("joins", "documents", "indexed"):
        shutil.rmtree(at / links, ignore_errors=True)
    files = {str(path.relative_to(at)): file_hash(path) for path in sorted(at.rglob("part-*"))}
    known = {"format": FORMAT_VERSION, "settings": {"near": settings.model_dump()}}
    write_sealed(at / "corpus.json", known | {"files": files})


def stands(folder: Path) -> bool:
    """Is every file there, as it was written? What is not, is made again."""
    known = read_sealed(folder / "corpus.json")
    paths = {folder / name: value for name, value in known["files"].items()} if known else {}
    return bool(paths) and all(
        path.exists() and hash_once(path) == value for path, value in paths.items()
    )


def folder_of(roots: Sequence[Path], indexes: Sequence[Index] = ()) -> Path:
    """Where the pairs of these corpora stand, or will.

    Raises:
        ConfigError: near duplicates were not prepared alike.
    """
    settings = signed.require_alike(roots)
    for index in indexes:
        copy_index.require_alike(str(home(roots[0])), settings, index)
    for root in roots if indexes else ():
        signed.require_signed_now(root)
    joins = [manifest(roots[0])["stages"][stage]["fingerprint"] for stage in ("forest", "pairs")]
    made_of = [signed.outputs_of(root, "signatures") for root in roots]
    have = [index.fingerprint() for index in indexes]
    return home(roots[0]) / FOLDER / fingerprint(joins, made_of, *([have] if have else []))


def link(at: Path, files: Callable[[Path, int], list[Path]], numbered: tuple[int, Part]) -> None:
    """The files of a part, under its number among all."""
    number, (root, part) = numbered
    for real in files(root, part):
        link = at / real.relative_to(home(root)).parent / part_name(number, real.suffix[1:])
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(real.resolve())


def each(work: Callable[[Any], Result], items: list[Any], done: str) -> list[Result]:
    """What comes of all items, by as many processes as there are cores."""
    total, cores = len(items), os.cpu_count() or 1
    with forks.each(work, items, cores) as results:
        told = telling(results, lambda n: f"near copies: {n:,} of {total:,} {done}", TELL_SECONDS)
        return list(told)


@contextmanager
def attempt(folder: Path) -> Iterator[Path]:
    """A folder to write into, which appears as `folder` if the block ends well. Two may be at it:
    what they make is equal."""
    at = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    try:
        yield at
        if not folder.exists():
            at.rename(folder)
    except forks.Killed:
        raise CorpusError(
            f"{folder.parent.parent}: a process that looked for near copies was killed; call "
            "again. SIGKILL is most often a lack of memory"
        ) from None
    finally:
        shutil.rmtree(at, ignore_errors=True)
