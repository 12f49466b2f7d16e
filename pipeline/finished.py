"""The last finished state of a corpus: what readers see while a run changes it.

A run replaces some files (the parts of joins; a stage whose settings changed), each by a rename,
and adds others. So before its first change it links all that readers read into `.finished/<name>/`
of the corpus (hard links: no bytes; about 20 us a file), and takes corpus.json away. Readers go by
the corpus.json that stands: in the corpus, or else there. The links go when the new one stands.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline import store
from pipeline.objects import is_url

FOLDER = ".finished"
# Read by stages alone; and what mixtures made, which stays where it is.
NOT_READ = ("joins", "cut", "packed", "edited", "linked")
MANIFEST = "corpus.json"
State = tuple[int, int] | None  # of corpus.json: inode, time


class ChangedError(ValueError):
    """A corpus changed while it was read; the message names it and the remedy."""


def standing(root: Path) -> Path:
    """Where the last finished state of a corpus stands; its own folder where there is none."""
    aside = _aside(root)
    set_aside = not (root / MANIFEST).exists() and (aside / MANIFEST).exists()
    return aside if set_aside else root


def home(folder: Path) -> Path:
    """The corpus itself, of a folder that `standing` gave: what others keep a path to."""
    return folder.parent.parent if folder.parent.name == FOLDER else folder


@contextmanager
def reading(corpus: str | Path) -> Iterator[Path]:
    """The folder of the last finished state of a corpus, a folder or URL, for a block that reads.

    Raises:
        ChangedError: the next state came meanwhile, or a run began to replace files: what was read
            may be of both.
        CorpusError: a file is damaged.
    """
    root = store.cache(str(corpus)) if is_url(str(corpus)) else Path(corpus)
    folder = standing(root)
    if is_url(str(corpus)):
        store.pull(folder) if folder != root else store.folder(corpus)
    with unchanged(folder, begin(folder)):
        yield folder


def begin(folder: Path) -> State:
    """The state of a folder that `standing` gave a moment ago.

    Raises:
        ChangedError: it is not there any more.
    """
    before = state(folder)
    if before is None and standing(home(folder)) != folder:
        raise _changed(folder)
    return before


@contextmanager
def unchanged(folder: Path, before: State) -> Iterator[None]:
    """A block that reads a corpus in this state; what a library cannot read is named.

    Raises:
        ChangedError: it is in another state at the end: what was read may be of both.
        CorpusError: the block failed because a file is damaged.
    """
    try:
        yield
    except Exception as error:
        require(folder, before)
        from pipeline.whole import explain  # loads pyarrow: `prepare` settles its heap before that

        explain(folder, error)
        raise
    require(folder, before)


def state(folder: Path) -> State:
    """Changes with every corpus.json, and when a run takes it away; None: it is not finished."""
    try:
        stat = os.stat(folder / MANIFEST)
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns


def require(folder: Path, before: State) -> None:
    """Refuse what was read of a corpus that is no more in the state that it was in.

    Raises:
        ChangedError: it is not.
    """
    if before is not None and state(folder) != before:
        raise _changed(folder)


def _changed(folder: Path) -> ChangedError:
    return ChangedError(
        f"{home(folder)} was changed while it was read (`assay prepare` or `attach` began or "
        "ended); call again"
    )


def set_aside(root: Path) -> None:
    """Before a run changes anything: keep the finished state, if there is one, for readers. On a
    disk without hard links there is none until the run ends.

    Call it, and `drop`, while holding the corpus."""
    if not (root / MANIFEST).exists():
        return  # none, or set aside by a run that was killed
    drop(root)
    building = root / f"{FOLDER}.new"
    try:
        _link(root, building / root.resolve().name)
        building.rename(root / FOLDER)
    except OSError:
        drop(root)
    (root / MANIFEST).unlink()


def drop(root: Path) -> None:
    """When corpus.json stands again: the state before it goes. Its own corpus.json goes first, so
    that who reads there while files vanish is told."""
    (_aside(root) / MANIFEST).unlink(missing_ok=True)
    for name in (FOLDER, f"{FOLDER}.new"):
        shutil.rmtree(root / name, ignore_errors=True)


def _link(root: Path, target: Path) -> None:
    for place, inner, files in os.walk(root):
        inner[:] = [n for n in inner if n[0] != "." and not (place == str(root) and n in NOT_READ)]
        to = target / Path(place).relative_to(root)
        to.mkdir(parents=True)
        for name in files:
            if name[0] != "." or name in (store.STATE, store.MANIFEST):
                os.link(f"{place}/{name}", f"{to}/{name}")


def _aside(root: Path) -> Path:
    return root / FOLDER / root.resolve().name
