"""Signatures against datasketch itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import given
from hypothesis import strategies as st

from dedup.bands import band_keys
from dedup.minhash import EMPTY, signatures
from dedup.shingles import shingles


def _datasketch(hashes: list[int], num_permutations: int, seed: int) -> list[int]:
    sketch = MinHash(
        num_permutations, seed=seed, scheme="affine32", hashfunc=lambda h: h & 0xFFFFFFFF
    )
    sketch.update_batch(hashes)
    values: list[int] = sketch.hashvalues.tolist()
    return values


@given(
    st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=20), max_size=4),
    st.sampled_from([1, 7, 128]),
    st.sampled_from([1, 42]),
)
def test_bit_equal_to_datasketch(sets: list[list[int]], num_permutations: int, seed: int) -> None:
    hashes = np.array([h for s in sets for h in s], np.uint64)
    offsets = np.cumsum([0, *map(len, sets)])
    found = signatures(hashes, offsets, num_permutations, seed)
    assert found.dtype == np.uint32
    assert found.tolist() == [_datasketch(s, num_permutations, seed) for s in sets]


@pytest.mark.parametrize("text", ["cat", "用 Python 写一个很短的函数。" * 3, "a b c d e f g " * 50])
def test_bit_equal_on_text(text: str) -> None:
    hashes, offsets = shingles(pa.array([text]))
    assert signatures(hashes, offsets, 128)[0].tolist() == _datasketch(hashes.tolist(), 128, 1)


def test_no_shingles_give_datasketchs_empty_signature() -> None:
    found = signatures(np.empty(0, np.uint64), np.array([0, 0]), 8)
    assert found.tolist() == [[EMPTY] * 8] == [MinHash(8).hashvalues.tolist()]


def test_datasketch_reads_our_rows() -> None:
    hashes = np.arange(2000, dtype=np.uint64)
    offsets = np.array([0, 1000, 2000])
    row = signatures(hashes, offsets, 256)[0]
    left = MinHash(hashvalues=row, seed=1, scheme="affine32")
    right = MinHash(256, seed=1, hashfunc=int)
    right.update_batch(range(200, 1200))
    assert left.jaccard(right) == pytest.approx(800 / 1200, abs=0.1)


def test_datasketchs_lsh_finds_the_same_neighbours() -> None:
    """Families of sets around the threshold: who shares a band by our keys, its index returns."""
    rng = np.random.default_rng(5)
    sets = []
    for _ in range(30):
        common = rng.integers(0, 2**64, 100, np.uint64)
        for own in rng.integers(0, 40, 5):
            sets.append(np.concatenate([common, rng.integers(0, 2**64, own, np.uint64)]))
    rows = signatures(np.concatenate(sets), np.cumsum([0, *map(len, sets)]))
    keys = band_keys(rows, 21, 6)
    ours = [np.flatnonzero((keys == key).any(axis=1)).tolist() for key in keys]
    theirs = [MinHash(hashvalues=row, seed=1, scheme="affine32") for row in rows]
    index = MinHashLSH(num_perm=128, params=(21, 6))
    for number, sketch in enumerate(theirs):
        index.insert(number, sketch)
    assert [sorted(index.query(sketch)) for sketch in theirs] == ours
    assert 300 < sum(map(len, ours)) < 750  # some of the pairs of a family, not all


@pytest.mark.parametrize(("shared", "apart"), [(300_000, 100_000), (100_000, 300_000)])
def test_no_bias_on_sets_far_above_65536(shared: int, apart: int) -> None:
    """datasketch PR #323: its old family of permutations went wrong there. One estimate has a
    standard deviation of at most 1 / (2 sqrt(128)), the mean of 8 seeds a third of it."""
    rng = np.random.default_rng(7)
    values = rng.integers(0, 2**64, shared + 2 * apart, np.uint64)
    left, right = values[: shared + apart], values[apart:]
    offsets = np.array([0, len(left), len(left) + len(right)])
    estimates = []
    for seed in range(1, 9):
        rows = signatures(np.concatenate([left, right]), offsets, 128, seed)
        estimates.append(float(np.mean(rows[0] == rows[1])))
    expected = shared / (shared + 2 * apart)
    assert np.mean(estimates) == pytest.approx(expected, abs=2 / np.sqrt(128) / np.sqrt(8))
    assert estimates == pytest.approx([expected] * 8, abs=2 / np.sqrt(128))
