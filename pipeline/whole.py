"""Damaged files, as those see them who read a finished corpus: named, with the remedy, and left as
they are. `assay prepare` makes them again: commits.py, when a stage reads one; damage.py, all.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path

from pipeline import finished, store
from pipeline.commits import CHANGED
from pipeline.corpus import CorpusError
from pipeline.files import hash_once, read_sealed

REMEDY = "`assay prepare CORPUS.yaml --verify` makes it again, or tells what to do"
NAMED = re.compile(r"""["']([^"'\n]+\.(?:parquet|arrow))["']""")  # in messages of DuckDB
SEARCH_SECONDS = 10.0  # 40 GB, where a message does not name the file
PACKAGES = ("pipeline", "mixtures", "trainer")  # their errors have their own remedy


def vouched(records: Iterable[Path]) -> dict[str, str]:
    """Name -> hash of every file that these commit records name; a damaged record names none."""
    found = filter(None, map(read_sealed, records))
    return {name: entry["xxh3"] for record in found for name, entry in record["outputs"].items()}


def read_by_readers(records: Iterable[Path]) -> dict[str, str]:
    """The same, without the files of stages alone."""
    found = vouched(records).items()
    return {name: h for name, h in found if name.partition("/")[0] not in finished.NOT_READ}


def require_whole(root: Path, name: str, vouched: dict[str, str]) -> None:
    """Refuse a file whose bytes are not what its commit record names; hashed once a process.

    Raises:
        CorpusError: it is damaged or missing, or its record is. Of a corpus on a store it is
            deleted here, for the store has it.
    """
    path, known = root / name, vouched.get(name)
    if path.exists() and known == hash_once(path):
        return
    if store.of(root) is not None and known is not None:
        path.unlink(missing_ok=True)
        raise CorpusError(f"{path} {CHANGED}; call again: it is fetched again")
    what = "is missing" if not path.exists() else CHANGED
    raise CorpusError(f"{path} {what if known else 'has no whole commit record'}; {REMEDY}")


def explain(root: Path, error: Exception, *, search: bool = True) -> None:
    """If a reader of a corpus failed because a file is damaged, say so; else do nothing.

    Args:
        search: where the message names no file, hash one after another, for SEARCH_SECONDS.

    Raises:
        CorpusError: a file is damaged; or a library could not read one, and in time it was not
            found whether that is why.
    """
    if type(error).__module__.partition(".")[0] in PACKAGES or isinstance(error, MemoryError):
        return
    if isinstance(error, OSError) and error.errno is not None:  # told by the system: a full disk
        return
    known, here = read_by_readers((root / "stats").rglob("part-*.json")), root.resolve()
    paths = (Path(name) for name in NAMED.findall(str(error)))
    named = [str(path.relative_to(here)) for path in paths if path.is_relative_to(here)]
    end = time.monotonic() + SEARCH_SECONDS
    for name in named or (known if search else ()):
        if time.monotonic() > end:
            if type(error).__module__ == "builtins" and not isinstance(error, OSError):
                error.add_note(f"Is a file of {root} damaged? {REMEDY}")  # or it is a fault of ours
                return
            raise CorpusError(
                f"{root}: a file is damaged, it seems ({short(str(error), 200)}); {REMEDY}"
            )
        if (root / name).exists():
            require_whole(root, name, known)


def short(message: str, most: int = 1_000) -> str:
    """A message of a library without raw bytes, and without the rest of a text that it quotes."""
    text = "".join(c if c.isprintable() or c == "\n" else "?" for c in message)
    return text if len(text) <= most else f"{text[:most]} ..."
