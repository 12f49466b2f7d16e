"""`not_in`: documents that are copies of one in an index stay out before any copy is preferred."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from mixtures.copies import hashes_of
from mixtures.spec import Mixture, Unique
from pipeline import copy_index
from pipeline.copy_index import Index
from pipeline.tables import names_of
from pipeline.unique import apart_from, clustered


def indexes_of(mixture: Mixture) -> list[Index]:
    """Those of `not_in`.

    Raises:
        ConfigError: there is none at a place.
        CorpusError: a file of one is missing or damaged.
    """
    return [copy_index.read(Path(place)) for place in mixture.not_in]


def copies_of_indexed(rows: pa.Table, unique: Unique, indexes: Sequence[Index]) -> np.ndarray:
    """Mask of the rows whose `copy` an indexed document has."""
    found = np.zeros(len(rows), dtype=bool)
    if not indexes:  # as of `unique: none`, which knows no copies
        return found
    there = np.asarray(rows["copy"].is_valid())
    copies = names_of(hashes_of(rows["copy"].drop_null()))
    found[there] = copy_index.have(indexes, unique, copies)
    return found


def near_indexed(
    root: Path, contents: pa.ChunkedArray, asked: np.ndarray, indexes: Sequence[Index]
) -> np.ndarray:
    """Mask of the rows among those `asked` that form a verified pair with an indexed document."""
    found = np.zeros(len(asked), dtype=bool)
    given = copy_index.verified(indexes, clustered(root))
    hashes = hashes_of(contents.filter(pa.array(asked)))
    found[asked] = ~apart_from(root, hashes, given)
    return found
