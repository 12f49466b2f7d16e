"""Held-out sets that need no choosing: those that stand, those kept, those that the user gives.

`heldout.json` is the commit record of the sets: what it does not name was left by a killed attempt.
A set never changes once it stands, whatever the settings say later; settings that ask for something
else are refused, for a comparison over other text is another comparison.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from filters import normalize
from filters.segments import Texts
from filters.signals import GROUPS
from pipeline import schema, store
from pipeline.config import ConfigError
from pipeline.files import file_hash, read_sealed
from pipeline.objects import is_url
from pipeline.readers import Bad, Piece
from pipeline.readers.files import file_size, file_version, list_files
from pipeline.readers.formats import read

if TYPE_CHECKING:
    from pipeline.settings import Heldout, Input

Rows = list[dict[str, Any]]  # of schema.HELDOUT
CHOSEN_WITH = ("share", "min_documents")  # of heldout.json: at the sets that this corpus chose


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
            f"{broken} is damaged (the disk, or another program?); put it back, or (every earlier "
            f"comparison is then void) delete {record} and {documents} to choose anew"
        )
    sets: dict[str, dict[str, Any]] = found["sets"]
    return sets


def _is_whole(documents: Path, found: dict[str, Any]) -> bool:
    """Whether the texts of the sets that stand are what they were; an attempt that was killed may
    have written further ones beside them."""
    if file_hash(documents) == found["hash"]:
        return True
    try:
        rows = pq.read_table(documents).to_pylist()
    except (pa.ArrowException, OSError):
        return False
    whole = (row for row in rows if schema.text_hash(row["text"].encode()) == row["content_hash"])
    texts = Counter(row["set"] for row in whole)
    return all(texts[name] == entry["documents"] for name, entry in found["sets"].items())


def check(root: Path, heldout: Heldout) -> None:
    """Refuse settings that the sets which stand do not answer to. Cheap: call it before any work.

    Raises:
        ConfigError: a file of `heldout.keep` or its documents are missing; `share` or
            `min_documents` is not what a set was chosen with.
    """
    for path, folder in zip(heldout.keep, kept_folders(heldout), strict=True):
        if not paths(folder)[0].exists():
            raise ConfigError(
                f"key `heldout.keep`: no such file {path}; name a heldout.json, or the URL of a "
                "corpus on a store"
            )
    for folder in (root, *kept_folders(heldout)):
        documents = paths(folder)[1]
        if recorded(folder) and not documents.exists():
            raise ConfigError(
                f"{folder / 'heldout.json'} names sets whose text is missing: no {documents}; put "
                "it back, or (every earlier comparison is then void) delete that heldout.json"
            )
    for name, entry in recorded(root).items():
        for key in CHOSEN_WITH:
            now = getattr(heldout, key)
            if key in entry and entry[key] != now:
                raise ConfigError(
                    f"key `heldout.{key}`: {now} asked for, but set {name} stands and was chosen "
                    f"with {entry[key]}; put {entry[key]} back, or delete {root}/heldout.json and "
                    f"{root}/heldout to choose anew: every earlier comparison is then void"
                )


def standing(root: Path) -> Rows:
    """Documents of the sets that stand."""
    sets = recorded(root)
    rows: Rows = pq.read_table(paths(root)[1]).to_pylist() if sets else []
    return [row for row in rows if row["set"] in sets]


def kept_folders(heldout: Heldout) -> list[Path]:
    """The corpora of `heldout.keep`, a heldout.json each; of a corpus on a store its URL."""
    name = "/heldout.json"
    return [
        store.folder(path.removesuffix(name)) if is_url(path) else Path(path).parent
        for path in heldout.keep
    ]


def kept(heldout: Heldout) -> Rows:
    """Documents of the sets of `heldout.keep`."""
    return [row for folder in kept_folders(heldout) for row in standing(folder)]


def join(rows: Rows, more: Rows, origin: str) -> Rows:
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
    return rows + [row for row in more if row["set"] not in contents]


def _contents(rows: Rows) -> dict[str, set[bytes]]:
    found: dict[str, set[bytes]] = {}
    for row in rows:
        found.setdefault(row["set"], set()).add(row["content_hash"])
    return found


# --- text that the user gives ---------------------------------------------------------------------


def independent_version(heldout: Heldout) -> list[tuple[str, int, str]]:
    """File, bytes and state of each file of `heldout.independent`: part of the fingerprint."""
    files = [path for pattern in heldout.independent for path, _ in list_files(pattern)]
    return [(path, file_size(path), file_version(path)) for path in files]


def independent(heldout: Heldout, source: Input) -> tuple[Rows, Rows]:
    """Documents of `heldout.independent`, one set a file named by its stem; and what was rejected.

    Raises:
        ConfigError: no record of a file is text.
    """
    rows: Rows = []
    rejected: Rows = []
    for pattern in heldout.independent:
        for path, file in list_files(pattern):
            texts, bad = _texts(Piece(path, file), source)
            if not texts:
                reasons = sorted({row["reason"] for row in bad})
                raise ConfigError(
                    f"key `heldout.independent`: none of the {len(bad)} records of {path} is text; "
                    f"reasons: {', '.join(reasons) or 'an empty file'}; the text is expected in "
                    f"the field {source.text!r}"
                )
            rejected += bad
            stem = Path(file).name.split(".")[0]
            measured = GROUPS["language"].measure(Texts(pa.array(texts, pa.string())), pa.nulls(0))
            for text, language in zip(texts, pa.array(measured["lang"]).to_pylist(), strict=True):
                rows.append(
                    {
                        "set": f"independent/{stem}",
                        "content_hash": schema.text_hash(text.encode()),
                        "language": language,
                        "source": stem,
                        "text": text,
                    }
                )
    return rows, rejected


def _texts(piece: Piece, source: Input) -> tuple[list[str], Rows]:
    texts = []
    rejected = []
    for record in read(piece, source, ""):
        if isinstance(record, Bad):
            bad = record
        else:
            text = normalize.normalize(record.text)[0]
            if text.strip():
                texts.append(text)
                continue
            bad = Bad(record.offset, record.num_bytes, "empty", "no text but white space")
        rejected.append(
            {
                "file": piece.file,
                "offset": bad.offset,
                "reason": bad.reason,
                "detail": bad.detail,
            }
        )
    return texts, rejected
