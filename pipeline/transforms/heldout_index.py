"""The shingles of all held-out texts as files, which all workers of a machine map: their pages are
in memory once, and go when memory is short. Of 100 MB of held-out text, 17 million shingles are
280 MB; each worker on its own would hold them, and twice as much while it builds them.
`heldout.max_documents` bounds the text of a source.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from dedup import contamination
from dedup.contamination import Index
from dedup.shingles import shingles
from pipeline import frozen
from pipeline.files import replacing

SLICE_ROWS = 512  # held-out texts whose shingles are made together


def outputs(root: Path) -> list[Path]:
    return [root / "heldout" / "index" / f"{name}.npy" for name in Index._fields]


def write(root: Path, ngram: int) -> None:
    """Index what heldout/documents.parquet holds."""
    runs, sizes = [], [np.zeros(0, np.int64)]
    first = 0
    documents = pq.ParquetFile(frozen.paths(root)[1])
    for batch in documents.iter_batches(SLICE_ROWS, columns=["text"]):
        hashes, offsets = shingles(batch.column(0), ngram)
        runs.append(contamination.by_hash(hashes, offsets, first))
        sizes.append(np.diff(offsets))
        first += len(batch)
    runs = runs or [(np.zeros(0, np.uint64), np.zeros(0, np.int32))]
    num = sum(len(hashes) for hashes, _ in runs)
    hashes_path, texts_path, sizes_path, directory_path, present_path = outputs(root)
    with (
        replacing(hashes_path) as hashes_file,
        replacing(texts_path) as texts_file,
        replacing(directory_path) as directory_file,
        replacing(present_path) as present_file,
    ):
        with open(hashes_file, "wb") as hashes_out, open(texts_file, "wb") as texts_out:
            for out, kind in ((hashes_out, "<u8"), (texts_out, "<i4")):
                header = {"descr": kind, "fortran_order": False, "shape": (num,)}
                np.lib.format.write_array_header_1_0(out, header)
            for piece_hashes, piece_texts in contamination.sorted_pieces(runs):
                hashes_out.write(piece_hashes.data)
                texts_out.write(piece_texts.data)
        _save(directory_file, contamination.directory(_mapped(hashes_file)))
        _save(present_file, contamination.presence(_mapped(hashes_file)))
    with replacing(sizes_path) as sizes_file:
        _save(sizes_file, np.concatenate(sizes))


def read(root: Path) -> Index:
    """The index, mapped; once a process, as long as the file stays the same."""
    return _read(root, outputs(root)[0].stat().st_mtime_ns)


@functools.lru_cache(maxsize=1)
def _read(root: Path, version: int) -> Index:
    del version  # part of the cache's key
    return Index(*map(_mapped, outputs(root)))


def _mapped(path: Path) -> Any:
    return np.load(path, mmap_mode="r").view(np.ndarray)


def _save(path: Path, array: npt.NDArray[Any]) -> None:
    with open(path, "wb") as file:  # a path would get another suffix
        np.save(file, array)
