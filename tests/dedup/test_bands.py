"""Band keys and partitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.bands import (
    band_keys,
    key_records,
    partition_slice,
    sort_records,
)

U64 = st.integers(0, 2**64 - 1)


def test_keys_agree_where_whole_bands_agree() -> None:
    sketch = np.arange(24, dtype=np.uint32).reshape(2, 12) % 12
    sketch[1, 7] = 99
    keys = band_keys(sketch, 4, 3)
    assert (keys[0] == keys[1]).tolist() == [True, True, False, True]


def test_equal_values_in_different_bands_do_not_meet() -> None:
    keys = band_keys(np.zeros((3, 126), np.uint32), 21, 6)
    assert len(np.unique(keys)) == 21


def test_rows_of_a_band_are_in_order() -> None:
    keys = band_keys(np.array([[1, 2], [2, 1]], np.uint32), 1, 2)
    assert keys[0, 0] != keys[1, 0]


def test_too_many_bands_are_refused() -> None:
    with pytest.raises(ValueError, match="3 x 5 exceeds the 12 values"):
        band_keys(np.zeros((1, 12), np.uint32), 3, 5)


def test_key_records_leave_out_texts_without_shingles() -> None:
    keys = np.array([[9, 3], [9, 9], [5, 3]], np.uint64)
    found, docs = key_records(keys, np.array([True, False, True]), part=2)
    assert found.tolist() == [3, 3, 5, 9]
    assert docs.tolist() == [2 << 32, 2 << 32 | 2, 2 << 32 | 2, 2 << 32]


@given(st.lists(U64, max_size=40), st.sampled_from([1, 2, 7, 64]))
def test_partitions_are_equal_ranges_of_the_key(values: list[int], num_partitions: int) -> None:
    keys = np.array(sorted(values), np.uint64)
    slices = [partition_slice(keys, p, num_partitions) for p in range(num_partitions)]
    assert [key for cut in slices for key in keys[cut].tolist()] == keys.tolist()
    for p, cut in enumerate(slices):
        part = keys[cut].tolist()
        # exact integers: key k is of partition p when p / n <= k / 2^64 < (p + 1) / n, floored
        assert all(p << 64 <= k * num_partitions + num_partitions - 1 for k in part)
        assert all(k < ((p + 1) << 64) // num_partitions for k in part)


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=9), max_size=4))
def test_shards_of_sorted_records_become_one(shards: list[list[tuple[int, int]]]) -> None:
    records = [(key, n << 32 | row) for n, shard in enumerate(shards) for key, row in sorted(shard)]
    keys, docs = np.array(records, np.uint64).reshape(-1, 2).T
    found = np.stack(sort_records(keys, docs), axis=1)
    assert found.tolist() == [list(record) for record in sorted(records)]
