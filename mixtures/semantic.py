"""`unique: semantic`: of texts that mean the same one stays, by embeddings that were attached.

What `near` keeps is walked once more, in the same order; dedup/semantic.py says how.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dedup.semantic import keep_unlike, unit
from mixtures.copies import hashes_of
from mixtures.spec import Mixture
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.embeddings import embeddings, made_by, require_faiss


def without_semantic(
    mixture: Mixture, roots: dict[str, Path], rows: pa.Table, kept: np.ndarray, order: np.ndarray
) -> np.ndarray:
    """Mask of the rows among `kept`, one of each content, that no better one means the same as.

    Raises:
        ConfigError: faiss is missing; a corpus has no embeddings, or other ones; a text has none.
    """
    assert mixture.semantic is not None, "spec.py asks for it"
    require_faiss()
    walk = order[kept[order]]
    vectors = vectors_of(mixture, roots, rows.take(walk))
    keep = np.zeros(len(kept), dtype=bool)
    keep[walk[keep_unlike(vectors, mixture.semantic.threshold)]] = True
    return keep


def vectors_of(mixture: Mixture, roots: dict[str, Path], rows: pa.Table) -> np.ndarray:
    """Embeddings of documents, float32 [num_rows, dimensions], each of length 1.

    Raises:
        ConfigError: as of `without_semantic`.
    """
    assert mixture.semantic is not None
    hashes = hashes_of(rows["content_hash"])
    return unit(_vectors(roots, mixture.semantic.group, rows["corpus"], hashes))


def _vectors(
    roots: dict[str, Path], group: str, corpora: pa.ChunkedArray, hashes: pa.Array
) -> np.ndarray:
    """Embeddings of contents, float32 [num_contents, dimensions]."""
    _require_alike(roots, group)
    found: np.ndarray | None = None
    for name, root in roots.items():
        (mine,) = np.nonzero(np.asarray(pc.equal(corpora, name)))
        if not len(mine):
            continue
        known, values = embeddings(root, group)
        at = pc.index_in(hashes.take(pa.array(mine)), value_set=known)
        if at.null_count:
            raise ConfigError(
                f"{counted(at.null_count, 'text')} of corpus {name!r} have no embedding in its "
                f"group {group!r}; call `assay embed {root} --name {group} --with ...` again: it "
                "embeds what is new"
            )
        if found is None:
            found = np.zeros((len(hashes), values.shape[1]), np.float32)
        elif found.shape[1] != values.shape[1]:
            raise ConfigError(
                f"embeddings of corpus {name!r} have {values.shape[1]} numbers, those before it "
                f"{found.shape[1]}: they are of two models; embed one of them again"
            )
        found[mine] = values[np.asarray(at)]
    return np.zeros((0, 1), np.float32) if found is None else found


def _require_alike(roots: dict[str, Path], group: str) -> None:
    makers = {name: made_by(root, group) for name, root in roots.items()}
    (first, by), *others = makers.items()
    for name, other in others:
        if other != by:
            raise ConfigError(
                f"`unique: semantic`: embeddings {group!r} of corpus {first!r} are by "
                f"{by or 'an attached file'}, of {name!r} by {other or 'an attached file'}; "
                f"embed one again with the other's function: `assay embed {roots[name]} --replace`"
            )
