from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.calibration import apply, chosen, fit

GOOD = np.array([False, False, True, False, True, True, False, True])
MARGINS = np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 1.0, 2.0, 3.0])


def test_isotonic_pools_what_is_out_of_order() -> None:
    fitted = fit(MARGINS, GOOD, "isotonic")
    assert fitted == {
        "method": "isotonic",
        "margins": [-3, -2, -1, 0, 1, 2, 3, 3],
        "probabilities": [0, 0, 0.5, 0.5, pytest.approx(2 / 3, abs=1e-06), 0.666667, 1, 1],
    }
    assert apply(np.array([-9.0, -1.5, 0.0, 9.0]), fitted).tolist() == [0, 0.25, 0.5, 1]


def test_platt_finds_the_curve_that_made_the_labels() -> None:
    rng = np.random.default_rng(5)
    margins = rng.normal(0, 2, 40_000)
    good = rng.random(40_000) < 1 / (1 + np.exp(-(0.5 * margins - 1)))
    fitted = fit(margins, good, "platt")
    assert fitted["slope"] == pytest.approx(0.5, abs=0.02)
    assert fitted["intercept"] == pytest.approx(-1, abs=0.03)
    assert apply(np.array([2.0]), fitted)[0] == pytest.approx(0.5, abs=0.02)


def test_platt_where_the_classes_do_not_meet() -> None:
    fitted = fit(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]), "platt")
    found = apply(np.array([-1e6, -1.5, 1.5, 1e6]), fitted)
    assert 0 <= found[0] < found[1] < 0.3 < 0.7 < found[2] < found[3] <= 1


def test_auto_takes_the_rising_curve_where_there_is_enough() -> None:
    assert [chosen("auto", 1_999), chosen("auto", 2_000)] == ["platt", "isotonic"]
    assert chosen("platt", 10**6) == "platt"


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=60),
    st.sampled_from(["platt", "isotonic"]),
)
def test_probabilities_rise_with_the_margin(pairs: list[tuple[int, bool]], method: str) -> None:
    margins = np.array([margin for margin, _ in pairs], dtype=np.float64)
    good = np.array([is_good for _, is_good in pairs])
    found = apply(np.linspace(-7, 7, 50), fit(margins, good, method))
    assert np.isfinite(found).all()
    assert 0 <= found.min() <= found.max() <= 1
    if method == "isotonic":
        assert (np.diff(found) >= 0).all()
