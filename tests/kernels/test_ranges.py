from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.ranges import copy_ranges


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_values(dtype: type[np.unsignedinteger]) -> None:
    source, out = np.arange(10, 20, dtype=dtype), np.zeros(6, dtype)
    copy_ranges(source, np.array([7, 2, 0]), np.array([10, 2, 2]), out, np.array([0, 3, 4]))
    assert out.tolist() == [17, 18, 19, 0, 10, 11]


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6), st.randoms())
def test_a_permutation_of_lists(lists: list[list[int]], random: np.random.Generator) -> None:
    order = list(range(len(lists)))
    random.shuffle(order)
    flat = np.array([n for item in lists for n in item], np.uint16)
    ends = np.cumsum([len(item) for item in lists], dtype=np.int64)
    lengths = np.array([len(lists[i]) for i in order], np.int64)
    out = np.empty_like(flat)
    begins, places = ends[order] - lengths, np.cumsum(lengths) - lengths
    copy_ranges(flat, begins, ends[order], out, places)
    assert out.tolist() == [n for i in order for n in lists[i]]
