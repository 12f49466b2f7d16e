from __future__ import annotations

import numpy as np
import pytest

from filters.edges import ANY, fit, ks, percentiles, psi, psi_noise


def langs(*names: str) -> np.ndarray:
    return np.array(names, dtype=object)


def test_a_score_stands_where_it_stood_in_its_own_language() -> None:
    scores = np.concatenate([np.arange(201.0), np.arange(1_000.0, 1_201.0), [0.0]])
    edges = fit(scores, ["zh"] * 201 + ["en"] * 201 + ["fr"])
    assert sorted(edges) == [ANY, "en", "zh"]  # one French text makes no percentiles
    assert (edges["zh"][0], edges["zh"][50], edges["zh"][100]) == (0, 100, 200)
    found = percentiles(
        np.array([100.0, 1_100.0, -5.0, 999.0, 50.0]), langs("zh", "en", "zh", "zh", "fr"), edges
    )
    assert found[:4].tolist() == [0.5, 0.5, 0, 1]
    assert found[4] == pytest.approx(0.127, abs=0.005)  # among all


def test_ties_stand_at_their_upper_end() -> None:
    edges = fit(np.array([0.0] * 150 + [1.0] * 50), ["zh"] * 200)
    assert percentiles(np.array([0.0, 1.0]), langs("zh", "zh"), edges).tolist() == [
        pytest.approx(0.74, abs=0.01),
        1,
    ]


def test_no_documents_have_no_edges() -> None:
    with pytest.raises(ValueError, match="edges of no documents"):
        fit(np.empty(0), [])


def test_what_has_not_moved_is_even() -> None:
    even = (np.arange(10_000) + 0.5) / 10_000
    assert psi(even) == 0
    assert ks(even) == pytest.approx(0.00005)


def test_what_has_moved() -> None:
    upper = 0.5 + np.arange(1_000) / 2_000  # only the better half of the old corpus
    assert ks(upper) == pytest.approx(0.5, abs=0.001)
    # five tenths hold .2 each, five hold half a document
    assert psi(upper) == pytest.approx(5 * 0.1 * np.log(2) + 5 * 0.0995 * np.log(200), abs=0.01)


def test_what_psi_is_by_chance() -> None:
    rng = np.random.default_rng(3)
    found = [psi(rng.random(500)) for _ in range(2_000)]
    assert float(np.mean(np.array(found) > psi_noise(500))) == pytest.approx(0.01, abs=0.008)
