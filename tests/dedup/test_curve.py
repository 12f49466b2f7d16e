"""The collision curve: known values, what `choose` promises, recall of planted pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup.bands import band_keys
from dedup.curve import choose, collision_probability, turning_point
from dedup.minhash import signatures


def test_collision_probability() -> None:
    assert collision_probability(0.8, 21, 6) == pytest.approx(0.99832, abs=1e-5)
    assert collision_probability(0.8, 14, 8) == pytest.approx(0.924, abs=1e-3)  # FineWeb's
    assert collision_probability(0.8, 9, 13) == pytest.approx(0.399, abs=1e-3)  # MAP-NEO's
    assert collision_probability(0.0, 21, 6) == 0.0
    assert collision_probability(1.0, 21, 6) == 1.0


def test_turning_point() -> None:
    """Those that the field uses, as published beside their bands and rows."""
    named = {(14, 8): 0.719, (20, 13): 0.794, (26, 11): 0.744, (9, 13): 0.844}
    assert [round(turning_point(*key), 3) for key in named] == list(named.values())


@pytest.mark.parametrize(
    ("threshold", "chosen"),
    [(0.5, (22, 2)), (0.6, (26, 3)), (0.7, (23, 4)), (0.8, (21, 6)), (0.9, (13, 9)), (1, (1, 128))],
)
def test_of_128_values(threshold: float, chosen: tuple[int, int]) -> None:
    assert choose(threshold, 128) == chosen


@given(st.floats(0.3, 1.0), st.integers(64, 512), st.sampled_from([0.5, 0.9, 0.98, 0.998]))
def test_the_most_rows_and_then_the_fewest_bands(
    threshold: float, permutations: int, recall: float
) -> None:
    def reaches(bands: int, rows: int) -> bool:
        return collision_probability(threshold, bands, rows) >= recall - 1e-12

    bands, rows = choose(threshold, permutations, recall)
    assert bands * rows <= permutations
    assert reaches(bands, rows)
    assert bands == 1 or not reaches(bands - 1, rows)
    assert not any(reaches(permutations // r, r) for r in range(rows + 1, permutations + 1))


def test_too_few_values_are_refused() -> None:
    with pytest.raises(ValueError, match=r"8 values find a pair at a Jaccard of 0.3 .* 0.942"):
        choose(0.3, 8)


@pytest.mark.parametrize("threshold", [0.7, 0.8, 0.9])
@pytest.mark.parametrize("distance", [-0.2, -0.1, 0.0, 0.05])
def test_measured_recall_follows_the_curve(threshold: float, distance: float) -> None:
    """2,000 planted pairs of 200 shingles around each threshold, with the bands and rows chosen for
    it; tolerance: 4 standard deviations of the share."""
    num_pairs, union = 2000, 200
    shared = round((threshold + distance) * union)
    rng = np.random.default_rng(7)
    hashes = rng.integers(0, 2**64, (num_pairs, union), dtype=np.uint64)
    left = hashes[:, : shared + (union - shared) // 2]
    right = np.concatenate([hashes[:, :shared], hashes[:, left.shape[1] :]], axis=1)
    of_sides = [
        signatures(side.ravel(), np.arange(num_pairs + 1) * side.shape[1], 128)
        for side in (left, right)
    ]
    chosen = choose(threshold, 128)
    a, b = (band_keys(values, *chosen) for values in of_sides)
    measured = float((a == b).any(axis=1).mean())
    expected = collision_probability(shared / union, *chosen)
    deviation = (expected * (1 - expected) / num_pairs) ** 0.5
    assert abs(measured - expected) <= 4 * deviation + 1 / num_pairs
