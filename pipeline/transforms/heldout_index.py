"""The shingles of all held-out texts as files, which all workers of a machine map: their pages are
in memory once, and go when memory is short. `heldout.max_documents` bounds the text of a source; of
100 MB of held-out text, 17 million shingles, 170 MB are looked up, mostly in a third of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from dedup.postings import Index, build_index
from dedup.shingles import Offsets, shingles
from pipeline import frozen
from pipeline.files import replacing

if TYPE_CHECKING:
    from pipeline.dedup_settings import Near
    from pipeline.heldout_settings import Heldout

SLICE_ROWS = 512  # held-out texts whose shingles are made together


def outputs(root: Path) -> list[Path]:
    return [root / "heldout" / "index" / f"{name}.npy" for name in Index._fields]


def write(root: Path, heldout: Heldout, near: Near) -> None:
    """Index what heldout/documents.parquet holds, for these thresholds."""
    shingles_path, *others = outputs(root)
    with replacing(shingles_path) as temporary:
        offsets = _write_shingles(frozen.paths(root)[1], near.ngram, temporary)
        index = build_index(_mapped(temporary), offsets, least(heldout, near))
        for path in others:
            with replacing(path) as beside, open(beside, "wb") as file:  # np.save would rename it
                np.save(file, getattr(index, path.stem))


def least(heldout: Heldout, near: Near) -> float:
    """The lowest threshold that is asked for: all settings of matches that the index depends on."""
    return min(heldout.containment, near.threshold)


def _write_shingles(documents: Path, ngram: int, path: Path) -> Offsets:
    """The shingles of all texts, one text after another; returns where each begins."""
    sizes = [np.zeros(1, np.int64)]
    with open(path, "wb") as file:
        _write_header(file, 0)
        for batch in pq.ParquetFile(documents).iter_batches(SLICE_ROWS, columns=["text"]):
            hashes, offsets = shingles(batch.column(0).fill_null(""), ngram)  # null: forgotten
            sizes.append(np.diff(offsets))
            file.write(hashes.data)
        offsets = np.cumsum(np.concatenate(sizes))
        file.seek(0)
        _write_header(file, int(offsets[-1]))  # numpy leaves room for the number of rows to grow
    return offsets


def _write_header(file: Any, num: int) -> None:
    header = {"descr": "<u8", "fortran_order": False, "shape": (num,)}
    np.lib.format.write_array_header_1_0(file, header)


def read(root: Path) -> Index:
    """The index, mapped: 0.2 ms. What was looked up stays in memory as long as this does."""
    return Index(*map(_mapped, outputs(root)))


def remapped(root: Path, index: Index) -> Index:
    """The index without those pages of shingles that were compared."""
    return index._replace(shingles=_mapped(outputs(root)[0]))


def _mapped(path: Path) -> Any:
    return np.load(path, mmap_mode="r").view(np.ndarray)
