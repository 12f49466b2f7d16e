"""Held-out sets that need no choosing: those that stand, here and in corpora that are kept.

`heldout.json` is the commit record of the sets: what it does not name was left by a killed attempt.
A set never changes once it stands, whatever the settings say later; settings that ask for something
else are refused, for a comparison over other text is another comparison.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import schema
from pipeline.config import ConfigError
from pipeline.files import DAMAGED, file_hash, read_sealed

if TYPE_CHECKING:
    from pipeline.heldout_settings import Heldout

BATCH_ROWS = 1024
# Of heldout.json, at the sets that this corpus chose; an older set may lack one of them.
CHOSEN_WITH = ("share", "min_documents", "max_documents")


def paths(root: Path) -> tuple[Path, Path]:
    """The record of the held-out sets of a corpus, and their documents."""
    return root / "heldout.json", root / "heldout" / "documents.parquet"


def recorded(root: Path) -> dict[str, dict[str, Any]]:
    """The sets that stand, by name, as heldout.json tells of them.

    Raises:
        ConfigError: it or their documents are damaged.
    """
    record, documents = paths(root)
    if not record.exists():
        return {}
    found = read_sealed(record)
    if found is None or (documents.exists() and not _is_whole(documents, found)):
        broken = record if found is None else documents
        raise ConfigError(
            f"{broken} {DAMAGED}; put it back, or (every earlier "
            f"comparison is then void) delete {record} and {documents} to choose anew"
        )
    sets: dict[str, dict[str, Any]] = found["sets"]
    return sets


def chosen(sets: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Those of `sets` that this corpus chose, whatever its folder was called then."""
    return {name: entry for name, entry in sets.items() if "share" in entry}


def _is_whole(documents: Path, found: dict[str, Any]) -> bool:
    """Whether the texts of the sets that stand are what they were; an attempt that was killed may
    have written further ones beside them."""
    if file_hash(documents) == found["hash"]:
        return True
    texts: Counter[str] = Counter()
    try:
        for batch in pq.ParquetFile(documents).iter_batches(BATCH_ROWS):
            rows = batch.to_pylist()
            texts.update(
                row["set"]
                for row in rows
                if schema.text_hash((row["text"] or "").encode()) == row["content_hash"]
            )
    except (pa.ArrowException, OSError):
        return False
    return all(texts[name] == entry["documents"] for name, entry in found["sets"].items())


def check(root: Path, heldout: Heldout, folders: list[Path]) -> None:
    """Refuse settings that the sets which stand do not answer to. Cheap: call it before any work.

    Args:
        folders: those of `heldout.keep`.

    Raises:
        ConfigError: a file of `heldout.keep` or its documents are missing; a key of CHOSEN_WITH
            is not what a set was chosen with.
    """
    for path, folder in zip(heldout.keep, folders, strict=True):
        if not paths(folder)[0].exists():
            raise ConfigError(
                f"key `heldout.keep`: no such file {path}; name a heldout.json, or the URL of a "
                "corpus on a store"
            )
    stand = {folder: recorded(folder) for folder in (root, *folders)}  # hashes all their text
    for folder, sets in stand.items():
        documents = paths(folder)[1]
        if sets and not documents.exists():
            raise ConfigError(
                f"{folder / 'heldout.json'} names sets whose text is missing: no {documents}; put "
                "it back, or (every earlier comparison is then void) delete that heldout.json"
            )
    for name, entry in stand[root].items():
        for key in CHOSEN_WITH:
            now = getattr(heldout, key)
            if key in entry and entry[key] != now:
                raise ConfigError(
                    f"key `heldout.{key}`: {now} asked for, but set {name} stands and was chosen "
                    f"with {entry[key]}; put {entry[key]} back, or delete {root}/heldout.json and "
                    f"{root}/heldout to choose anew: every earlier comparison is then void"
                )


def standing(root: Path) -> pa.Table:
    """Documents of the sets that stand, as schema.HELDOUT."""
    sets = recorded(root)
    if not sets:
        return schema.HELDOUT.empty_table()
    rows = pq.read_table(paths(root)[1], schema=schema.HELDOUT)
    return rows.filter(pc.is_in(rows["set"], pa.array(sets, pa.string())))


def kept(folders: list[Path]) -> pa.Table:
    """Documents of the sets of other corpora."""
    return pa.concat_tables([schema.HELDOUT.empty_table(), *map(standing, folders)])


def join(rows: pa.Table, more: pa.Table, origin: str) -> pa.Table:
    """Both, where a set that is in both holds the same contents.

    Raises:
        ConfigError: it does not; names the set, `origin` and the remedy.
    """
    contents, others = _contents(rows), _contents(more)
    for name in contents.keys() & others.keys():
        if contents[name] != others[name]:
            raise ConfigError(
                f"held-out set {name} stands with {len(contents[name])} texts, and {origin} has "
                f"{len(others[name])} under this name, not the same; put back what it was, or give "
                "the new text another name (of the file, of the folder of the corpus)"
            )
    is_new = pc.invert(pc.is_in(more["set"], pa.array(contents, pa.string())))
    return pa.concat_tables([rows, more.filter(is_new)])


def _contents(rows: pa.Table) -> dict[str, set[bytes]]:
    found: dict[str, set[bytes]] = {}
    columns = (rows[name].to_pylist() for name in ("set", "content_hash"))
    for name, content in zip(*columns, strict=True):
        found.setdefault(name, set()).add(content)
    return found
