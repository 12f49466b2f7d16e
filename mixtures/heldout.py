"""Held-out sets as an evaluation reads them: the same bytes for every arm.

They belong to the corpora, not to a mixture, and hold their own text, so no arm's selection can
touch them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import frozen, schema
from pipeline.config import ConfigError
from pipeline.encoder import Encoder


@dataclass(frozen=True)
class HeldoutSet:
    """One frozen set: text of one language from one source."""

    name: str
    language: str
    source: str
    documents: tuple[tuple[str, str], ...]  # (content hash as hex, text), by content hash

    @property
    def num_bytes(self) -> int:
        return sum(len(text.encode()) for _, text in self.documents)


def evaluation_sets(roots: Iterable[str | Path], max_bytes: int | None = None) -> list[HeldoutSet]:
    """The held-out sets of all corpora, as `sets_of` has them.

    Raises:
        ConfigError: no corpus has held-out text, or that of one is damaged.
    """
    folders = _folders(roots)
    found = texts(folders)
    if not len(found):
        listed = ", ".join(map(str, folders))
        raise ConfigError(
            f"no held-out text in {listed}: an evaluation needs some; set `heldout.share` or "
            "`heldout.independent` in corpus.yaml and call `assay prepare`"
        )
    return sets_of(found, max_bytes)


def texts(roots: Iterable[str | Path]) -> pa.Table:
    """All held-out text of these corpora, as schema.HELDOUT, by set and content hash: a content
    counts once in a set, and one whose text was forgotten not at all.

    Raises:
        ConfigError: that of one is damaged.
    """
    folders = _folders(roots)
    for folder in folders:
        frozen.recorded(folder)  # hashes its text
    paths = [folder / "heldout" / "documents.parquet" for folder in folders]
    tables = [pq.read_table(path, schema=schema.HELDOUT) for path in paths if path.exists()]
    rows = [row for table in tables for row in table.to_pylist() if row["text"] is not None]
    unique = {(*_key(row), row["content_hash"]): row for row in rows}
    return pa.Table.from_pylist([unique[key] for key in sorted(unique)], schema.HELDOUT)


def _folders(roots: Iterable[str | Path]) -> list[Path]:
    return sorted({Path(root).resolve() for root in roots})


def sets_of(found: pa.Table, max_bytes: int | None = None) -> list[HeldoutSet]:
    """The held-out sets of `texts`, by name.

    An independent set that holds several languages comes as one set each, under the same name.

    Args:
        max_bytes: of text per set and language; documents are taken in the order of content hashes,
            which is as good as random and the same for all, the first one whatever its size.
    """
    ordered = found.to_pylist()
    return [
        HeldoutSet(
            name=name,
            language=language,
            source=source,
            documents=tuple(
                (row["content_hash"].hex(), row["text"]) for row in _capped(list(group), max_bytes)
            ),
        )
        for (name, language, source), group in itertools.groupby(ordered, key=_key)
    ]


def tokenize(sets: Sequence[HeldoutSet], encoder: Encoder) -> list[list[np.ndarray]]:
    """Ids of each document of each set, bos and eos as the tokenizer's policy says."""
    tokens = []
    for heldout in sets:
        texts = pa.array([text for _, text in heldout.documents], pa.string())
        ids, offsets, _ = encoder.encode(texts)
        tokens.append(np.split(ids, offsets[1:-1]))
    return tokens


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["set"], row["language"], row["source"]


def _capped(rows: list[dict[str, Any]], max_bytes: int | None) -> list[dict[str, Any]]:
    if max_bytes is None:
        return rows
    ends = np.cumsum([len(row["text"].encode()) for row in rows])
    return rows[: max(1, int(np.searchsorted(ends, max_bytes, side="right")))]
