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
from typing import Any

from pipeline import forks
from pipeline.clock import telling
from pipeline.commits import record_path
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError, fetched, manifest
from pipeline.files import (
    file_hash,
    hash_once,
    part_name,
    part_number,
    read_sealed,
    write_sealed,
)
from pipeline.fingerprint import fingerprint
from pipeline.finished import home
from pipeline.schema import FORMAT_VERSION
from pipeline.settings import Near
from pipeline.transforms import near, near_join
from pipeline.whole import require_whole, vouched

FOLDER = "linked"
TELL_SECONDS = 10.0  # between lines on stderr
Part = tuple[Path, int]  # a corpus, and the number of a part in it


def linked(roots: Sequence[Path]) -> Path:
    """The folder that holds the pairs and clusters of all these corpora; made unless it stands.

    Raises:
        ConfigError: near duplicates were not prepared alike.
        CorpusError: a file of a corpus is damaged, or is changing.
    """
    folder = folder_of(roots)
    if _stands(folder):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    settings = Near(**manifest(roots[0])["settings"]["near"])
    parts = [(root, part) for root in roots for part in _parts(root)]
    num = near_join.partitions(
        sum(manifest(root)["stages"]["ingest"]["totals"]["bytes"] for root in roots)
    )
    with _attempt(folder) as at:
        numbers = list(range(len(parts)))
        _each(functools.partial(_link, at), list(enumerate(parts)), "linked")
        forest = functools.partial(near_join.forest, at, settings, numbers, num=num)
        _each(forest, list(range(num)), "joined")
        near_join.join(at, num)
        shingle = functools.partial(near.shingle, at, settings, partitions=num)
        _each(shingle, numbers, "shingled")
        verify = functools.partial(near_join.verify, at, settings, numbers, num=num)
        _each(verify, list(range(num)), "verified")
        for links in ("joins", "documents"):
            shutil.rmtree(at / links, ignore_errors=True)
        files = {str(path.relative_to(at)): file_hash(path) for path in sorted(at.rglob("part-*"))}
        known = {"format": FORMAT_VERSION, "settings": {"near": settings.model_dump()}}
        write_sealed(at / "corpus.json", known | {"files": files})
    return folder


def _stands(folder: Path) -> bool:
    """Is every file there, as it was written? What is not, is made again."""
    known = read_sealed(folder / "corpus.json")
    paths = {folder / name: value for name, value in known["files"].items()} if known else {}
    return bool(paths) and all(
        path.exists() and hash_once(path) == value for path, value in paths.items()
    )


def folder_of(roots: Sequence[Path]) -> Path:
    """Where the pairs of these corpora stand, or will.

    Raises:
        ConfigError: near duplicates were not prepared alike.
    """
    _require_alike(roots)
    made = [
        [read_sealed(record_path(root, "signatures", n)) for n in _parts(root)] for root in roots
    ]
    outputs = [[record["outputs"] if record else None for record in records] for records in made]
    joins = [manifest(roots[0])["stages"][stage]["fingerprint"] for stage in ("forest", "pairs")]
    return home(roots[0]) / FOLDER / fingerprint(joins, outputs)


def _require_alike(roots: Sequence[Path]) -> None:
    first = roots[0]
    for other in roots[1:]:
        ours, theirs = (manifest(root)["settings"]["near"] for root in (first, other))
        remedy = "prepare one of them again, or use `unique: exact`"
        for key in ours:
            if ours[key] != theirs[key]:
                raise ConfigError(
                    f"`unique: near` over {first} and {other}: `near: {{{key}}}` is {ours[key]} in "
                    f"one and {theirs[key]} in the other; {remedy}"
                )
        ours, theirs = (
            manifest(root)["stages"]["signatures"]["fingerprint"] for root in (first, other)
        )
        if ours != theirs:
            raise ConfigError(
                f"`unique: near` over {first} and {other}: signed by different versions of "
                "assay; call `assay prepare` for both again: it signs anew and no more"
            )


def _parts(root: Path) -> list[int]:
    """Numbers of the parts of a corpus."""
    return sorted(map(part_number, (root / "stats" / "signatures").glob("part-*.json")))


def _link(at: Path, numbered: tuple[int, Part]) -> None:
    """The files of a part, under its number among all."""
    number, (root, part) = numbered
    signed, documents = near.sign_outputs(root, part)[:2], root / "documents" / part_name(part)
    for stage, paths in (("signatures", signed), ("ingest", [documents])):
        known = vouched([record_path(root, stage, part)])
        for path in paths:
            name = path.relative_to(root)
            real = home(root) / name
            fetched(home(root), str(name))
            require_whole(home(root), str(name), known)
            link = at / name.parent / part_name(number, real.suffix[1:])
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(real.resolve())


def _each(work: Callable[[Any], Any], items: list[Any], done: str) -> None:
    """All items, by as many processes as there are cores."""
    total, cores = len(items), os.cpu_count() or 1
    with forks.each(work, items, cores) as results:
        for _ in telling(
            results, lambda n: f"near copies: {n:,} of {total:,} {done}", TELL_SECONDS
        ):
            pass


@contextmanager
def _attempt(folder: Path) -> Iterator[Path]:
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
