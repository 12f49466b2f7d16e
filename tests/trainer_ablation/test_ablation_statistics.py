from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, t

from trainer.ablation.simulation import REGIMES, verdict_counts
from trainer.ablation.statistics import Difference, bits_per_byte, decide, difference, shares

LN2 = np.log(2)


def test_shares_weigh_languages_first_then_bytes():
    num_bytes = np.array([100.0, 300.0, 50.0])
    assert shares(num_bytes, ["zh", "zh", "en"], {"zh": 0.5, "en": 0.5}).tolist() == [
        0.125,
        0.375,
        0.5,
    ]
    assert shares(num_bytes, ["zh", "zh", "en"], {"zh": 3}).tolist() == [0.25, 0.75, 0.0]


def test_a_language_without_items_is_named():
    with pytest.raises(ValueError, match=r"no held-out item in language 'ja'; .*: en, zh"):
        shares(np.ones(2), ["zh", "en"], {"ja": 1})


def test_bits_per_byte_is_a_ratio_of_sums_not_a_mean_of_ratios():
    nats_SI = np.array([[100 * LN2, 900 * LN2]])
    assert bits_per_byte(nats_SI, np.array([100.0, 300.0]), ["en", "en"], {"en": 1}) == (
        pytest.approx([2.5])
    )


def test_equal_sizes_give_the_two_way_anova():
    """Var = (MS_seed + MS_item - MS_error) / (S I), Satterthwaite's degrees of freedom."""
    x_SI = np.array([[0.1, 0.5, 0.2, 0.9], [0.3, 0.6, 0.5, 1.0], [0.2, 0.9, 0.1, 1.4]])
    num_seeds, num_items = x_SI.shape
    row, column = x_SI.mean(1, keepdims=True), x_SI.mean(0, keepdims=True)
    ms_seed = num_items * ((row - x_SI.mean()) ** 2).sum() / (num_seeds - 1)
    ms_item = num_seeds * ((column - x_SI.mean()) ** 2).sum() / (num_items - 1)
    df_error = (num_seeds - 1) * (num_items - 1)
    ms_error = ((x_SI - row - column + x_SI.mean()) ** 2).sum() / df_error
    sum_of_squares = ms_seed + ms_item - ms_error
    df = sum_of_squares**2 / (
        ms_seed**2 / (num_seeds - 1) + ms_item**2 / (num_items - 1) + ms_error**2 / df_error
    )
    half = t.ppf(0.975, df) * np.sqrt(sum_of_squares / (num_seeds * num_items))

    num_bytes = np.full(num_items, 64.0)
    nats_SI = x_SI * num_bytes * LN2
    found = difference(nats_SI, np.zeros_like(nats_SI), num_bytes, ["en"] * 4, {"en": 1})
    assert found.estimate == pytest.approx(x_SI.mean())
    assert found.per_seed == pytest.approx(x_SI.mean(1).tolist())
    assert found.degrees_of_freedom == pytest.approx(df)
    assert (found.low, found.high) == pytest.approx((x_SI.mean() - half, x_SI.mean() + half))
    assert found.num_items == 4


def test_a_seed_effect_on_unequal_documents_is_not_error():
    """Pure seed noise: the interval is the seeds' own t interval, whatever the documents' sizes."""
    num_bytes = np.array([10.0, 1000.0, 200.0, 30.0])
    seeds = np.array([-0.02, 0.01, 0.04])
    nats_SI = seeds[:, None] * num_bytes * LN2
    languages, weights = ["zh", "zh", "en", "en"], {"zh": 0.5, "en": 0.5}
    found = difference(nats_SI, np.zeros_like(nats_SI), num_bytes, languages, weights)
    half = t.ppf(0.975, 2) * 0.03 / np.sqrt(3)
    assert (found.low, found.high) == pytest.approx((0.01 - half, 0.01 + half))
    assert found.degrees_of_freedom == pytest.approx(2)
    assert found.verdict == "undecided"


def test_equal_arms_are_undecided():
    nats_SI = np.arange(1.0, 13.0).reshape(3, 4)
    found = difference(nats_SI, nats_SI, np.full(4, 9.0), ["en"] * 4, {"en": 1})
    assert (found.estimate, found.low, found.high) == (0.0, 0.0, 0.0)
    assert found.verdict == "undecided"


@pytest.mark.parametrize(("num_seeds", "num_items"), [(2, 6), (1, 6), (3, 1)])
def test_too_few_seeds_or_items_give_no_interval(num_seeds: int, num_items: int):
    nats_SI = np.ones((num_seeds, num_items))
    found = difference(nats_SI, 2 * nats_SI, np.ones(num_items), ["zh"] * num_items, {"zh": 1})
    assert (found.low, found.high, found.degrees_of_freedom) == (None, None, None)
    assert found.estimate == pytest.approx(-1 / LN2)
    assert found.verdict == "undecided"


@pytest.mark.parametrize("regime", ["seeds", "items", "both", "equal sizes"])
@pytest.mark.parametrize("num_seeds", [3, 5])
def test_false_verdicts_of_same_arms(regime: str, num_seeds: int):
    """400 A/A studies: at most what 5.5 % would give with probability .999 (37 of 400)."""
    bound = int(binom.ppf(0.999, 400, 0.055))
    counts = verdict_counts(REGIMES[regime], num_seeds, num_studies=400, seed=7)
    assert bound == 37
    assert counts["better"] + counts["worse"] <= bound


def test_a_planted_effect_is_found_with_its_sign():
    counts = verdict_counts(REGIMES["seeds"], 5, num_studies=100, effect=-0.04)
    assert counts["worse"] == 0
    assert counts["better"] >= 95
    assert counts["covered"] >= 90


def between(low: float | None, high: float | None) -> Difference:
    middle = 0.0 if low is None or high is None else (low + high) / 2
    return Difference(middle, (middle,), 9, 0.95, low, high, 2.0, 0.1, 0.1)


@pytest.mark.parametrize(
    ("primary", "sets", "verdict"),
    [
        ((-0.3, -0.1), [(-0.4, -0.1), (-0.2, 0.1)], "better"),
        ((0.1, 0.3), [(0.1, 0.4)], "worse"),
        ((-0.1, 0.1), [(-0.2, 0.1), (-0.1, 0.2)], "undecided"),
        ((None, None), [(None, None)], "undecided"),
        ((-0.3, -0.1), [(-0.1, 0.4)], "better"),  # within the noise: a sign says nothing
        (
            (-0.3, -0.1),
            [(-0.4, -0.2), (0.1, 0.2)],
            "undecided: depends on the held-out set",
        ),
        ((-0.1, 0.1), [(-0.4, -0.2), (0.1, 0.2)], "undecided: depends on the held-out set"),
    ],
)
def test_decide(primary, sets, verdict):
    named = {f"set-{n}": between(*bounds) for n, bounds in enumerate(sets)}
    assert decide(between(*primary), named) == verdict
