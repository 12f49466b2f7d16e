"""A corpus folder: its manifest, the files of its tables, its lock."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline import disk, forks, publish, store
from pipeline.files import DAMAGED, read_sealed, taken
from pipeline.schema import FORMAT_VERSION


class CorpusError(ValueError):
    """A corpus folder cannot be used; the message names the folder and the remedy."""


def manifest(root: Path) -> dict[str, Any]:
    """corpus.json of a finished corpus.

    Raises:
        CorpusError: not a corpus, not finished, damaged, or of another format version.
    """
    path = root / "corpus.json"
    if not path.exists():
        unfinished = (root / "inputs.json").exists()
        what = "an unfinished corpus" if unfinished else "not a corpus"
        raise CorpusError(f"{root}: {what} (no corpus.json); run `assay prepare` for it first")
    found = read_sealed(path)
    if found is None:
        raise CorpusError(
            f"{path} {DAMAGED}; `assay prepare --verify` finds what else is, and makes it again"
        )
    if found["format"] != FORMAT_VERSION:
        raise CorpusError(
            f"{root}: format {found['format']}, this version of assay reads {FORMAT_VERSION}; "
            "run `assay prepare` again with another `output`"
        )
    return found


def part_paths(root: Path, table: str) -> list[Path]:
    """Files of a table (`documents`, `signals/gopher`, `tokens/<hash>` ...) by part number; fetched
    first where the corpus is on a store."""
    store.fetch_table(root, table)
    return sorted(path for path in (root / table).glob("part-*") if path.suffix != ".json")


def fetched(root: Path, name: str) -> Path:
    """A file of a finished corpus by its name; fetched first where the corpus is on a store."""
    store.fetch_table(root, name.rpartition("/")[0], name)
    return root / name


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold a folder, of a corpus or of a training run, for writing; where a corpus is on a store,
    its lease too.

    Raises:
        CorpusError: another process holds it; names its process id.
        LeaseError: another machine holds it.
        DiskError: a disk refuses it, or what the block writes.
    """
    with disk.explained(root):
        try:
            root.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise CorpusError(
                f"{root}: a file stands where this folder is to be; name another `output`, or "
                "move it"
            ) from None
        with open(root / ".lock", "a+") as file:
            if not taken(file):
                file.seek(0)
                raise CorpusError(
                    f"{root}: another assay process writes here (process {file.read().strip()}); "
                    "wait for it, or stop it and call again: what it finished is kept"
                )
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            with forks.not_inherited(file.fileno()), publish.written(root):
                yield
