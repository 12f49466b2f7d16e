from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixtures.order import epoch_order
from mixtures.permutation import derive_seed, permute


@given(st.integers(1, 3_000), st.integers(0, 2**64 - 1))
def test_permutation_is_a_bijection(n: int, seed: int) -> None:
    assert sorted(permute(np.arange(n), n, seed).tolist()) == list(range(n))


def test_values_are_fixed_for_ever() -> None:
    """A change here would change the data order of every run that resumes."""
    assert permute(np.arange(10), 10, 17).tolist() == [6, 4, 2, 1, 7, 3, 8, 0, 5, 9]
    assert permute(np.arange(3), 1_000_003, 17).tolist() == [558622, 569867, 403826]


def test_an_index_beyond_n_does_not_walk_for_ever() -> None:
    n = 1_000
    beyond = np.array([n, n + 1, 10**12, -1])
    assert permute(beyond, n, 5).tolist() == permute(beyond % n, n, 5).tolist()


def test_shape_is_kept_and_seed_matters() -> None:
    index = np.arange(6).reshape(2, 3)
    assert permute(index, 100, 1).shape == (2, 3)
    assert permute(np.arange(100), 100, 1).tolist() != permute(np.arange(100), 100, 2).tolist()
    assert derive_seed(1, "a") != derive_seed(2, "a") != derive_seed(2, "b")


def test_empty_range_is_refused() -> None:
    with pytest.raises(ValueError, match="permutation of 0 items"):
        permute(np.arange(0), 0, 1)


def test_neighbours_are_not_kept_together() -> None:
    """Of 100,000 neighbours about one per n stays a neighbour."""
    image = permute(np.arange(100_000), 100_000, 3)
    assert int((np.abs(np.diff(image)) == 1).sum()) < 20


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=8).filter(sum),
    st.integers(1, 8),
    st.integers(0, 2**64 - 1),
)
def test_epoch_order_visits_every_window_once(windows: list[int], group: int, seed: int) -> None:
    part, window = epoch_order(np.arange(sum(windows)), tuple(windows), group, seed)
    expected = [(p, w) for p, num in enumerate(windows) for w in range(num)]
    assert sorted(zip(part.tolist(), window.tolist(), strict=True)) == expected


def test_epoch_order_stays_inside_a_group_of_parts() -> None:
    windows = (50, 50, 50, 50, 50)
    part, _ = epoch_order(np.arange(250), windows, 2, 7)
    group = (part // 2).tolist()
    changes = sum(a != b for a, b in itertools.pairwise(group))
    assert changes == 2
