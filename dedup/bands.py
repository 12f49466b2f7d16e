"""Locality-sensitive hashing: signatures to band keys, and keys to partitions.

A signature is cut into bands of `rows` values; two texts that agree in one whole band are
candidates. What is shuffled are records (key, doc) of 16 bytes, sorted by key, so that the records
of one partition (the top bits of the key) are a slice of every shard's file. `doc` names a text as
`part << 32 | row`. Texts without shingles share one empty signature: `key_records` leaves them out.

How many bands of how many values: dedup/curve.py. Texts that share a key are only proposals:
dedup/sketches.py looks whether it is worth the while, dedup/clusters.py verifies.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dedup.minhash import Signatures
from dedup.shingles import Array, mix
from kernels.compile import kernel

Keys = npt.NDArray[np.uint64]
Docs = npt.NDArray[np.uint64]
Edges = npt.NDArray[np.uint64]  # shape (m, 2)

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def band_keys(signatures: Signatures, bands: int, rows: int) -> Keys:
    """Keys of shape (texts, bands). The band's number is part of the key: bands never meet.

    Raises:
        ValueError: the signatures are too short for `bands` times `rows` values.
    """
    if bands * rows > signatures.shape[1]:
        raise ValueError(
            f"bands x rows = {bands} x {rows} exceeds the {signatures.shape[1]} values of a "
            "signature; lower one or raise permutations"
        )
    keys = np.empty((len(signatures), bands), np.uint64)
    _hash_bands(signatures, rows, keys)
    return keys


def key_records(keys: Keys, has_shingles: npt.NDArray[np.bool_], part: int) -> tuple[Keys, Docs]:
    """Sorted records of shard `part`, whose row r has the band keys `keys[r]`."""
    rows = np.flatnonzero(has_shingles)
    docs = rows.astype(np.uint64) | np.uint64(part << 32)
    return sort_records(keys[rows].reshape(-1), np.repeat(docs, keys.shape[1]))


def sort_records(keys: Keys, docs: Docs) -> tuple[Keys, Docs]:
    """Records ordered by (key, doc). Those of one key must come with ascending docs, as from one
    shard after another: then a sort by key alone will do, which merges runs that are sorted.
    """
    order = np.argsort(keys, kind="stable")
    return keys[order], docs[order]


def partition_slice(sorted_keys: Keys, partition: int, num_partitions: int) -> slice:
    """Records whose keys lie in the equal range `partition` of the `num_partitions` of 2^64."""
    begin, end = ((p << 64) // num_partitions for p in (partition, partition + 1))
    first = np.searchsorted(sorted_keys, np.uint64(begin))
    last = np.searchsorted(sorted_keys, np.uint64(end)) if end < 1 << 64 else len(sorted_keys)
    return slice(int(first), int(last))


@kernel
def _hash_bands(signatures: Array, rows: int, keys: Array) -> None:
    for text in range(keys.shape[0]):
        for band in range(keys.shape[1]):
            key = mix(np.uint64(band + 1))
            for k in range(band * rows, (band + 1) * rows):
                key = (key ^ np.uint64(signatures[text, k])) * _MULTIPLIER
                key ^= key >> np.uint64(32)
            keys[text, band] = mix(key)
