from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixtures.schedule import MAX_PERIOD, choose_quotas, fill_period, make_period


@given(st.lists(st.integers(1, 400), min_size=1, max_size=7))
@settings(max_examples=60, deadline=None)
def test_every_prefix_is_within_one_window_of_its_quota(quotas: list[int]) -> None:
    table = fill_period(np.array(quotas))
    period = sum(quotas)
    assert np.bincount(table, minlength=len(quotas)).tolist() == quotas
    for source, quota in enumerate(quotas):
        seen = np.cumsum(table == source) * period
        owed = quota * np.arange(1, period + 1)
        assert int(np.abs(seen - owed).max()) < period  # strictly less than one window, in integers


def test_the_longest_period_with_unequal_sources() -> None:
    schedule = make_period({"a": 0.61803, "b": 0.3, "c": 0.08, "d": 0.00197})
    assert schedule.period <= MAX_PERIOD
    for source, quota in enumerate(schedule.quotas.tolist()):
        seen = np.cumsum(schedule.source == source) * schedule.period
        owed = quota * np.arange(1, schedule.period + 1)
        assert int(np.abs(seen - owed).max()) < schedule.period


def test_simple_weights_take_the_shortest_exact_period() -> None:
    schedule = make_period({"books": 0.2, "english": 0.4, "chinese": 0.4})
    assert (schedule.period, schedule.quotas.tolist()) == (5, [1, 2, 2])
    assert schedule.source.tolist() == [1, 2, 0, 1, 2]
    assert schedule.rank.tolist() == [0, 0, 0, 1, 1]
    assert schedule.realised() == {"books": 0.2, "english": 0.4, "chinese": 0.4}


def test_weights_need_not_sum_to_one() -> None:
    assert make_period({"a": 3.0, "b": 1.0}).quotas.tolist() == [3, 1]


def test_position_to_source_and_window_number() -> None:
    schedule = make_period({"books": 0.2, "english": 0.4, "chinese": 0.4})
    source, number = schedule.locate(np.array([0, 1, 2, 3, 4, 5, 12, 5_000_003]))
    assert source.tolist() == [1, 2, 0, 1, 2, 1, 0, 1]
    assert number.tolist() == [0, 0, 0, 1, 1, 2, 2, 2_000_001]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(0, 300))
@settings(max_examples=30, deadline=None)
def test_window_numbers_of_a_source_count_up(quotas: list[int], end: int) -> None:
    schedule = make_period({str(at): float(q) for at, q in enumerate(quotas)})
    source, number = schedule.locate(np.arange(end))
    until = schedule.windows_until(end)
    for index in range(len(quotas)):
        assert number[source == index].tolist() == list(range(until[index]))


def test_rounding_beyond_one_percent_is_refused_with_the_remedy() -> None:
    """Megatron-LM #705: a weight of .001 against .999 must not end in an IndexError."""
    schedule = make_period({"small": 0.001, "large": 0.999})
    assert schedule.quotas.tolist() == [1, 999]
    with pytest.raises(ValueError, match=r"source 'tiny': weight 1e-06 .* raise its weight to at"):
        make_period({"tiny": 1e-6, "large": 1 - 1e-6})


def test_awkward_weights_are_realised_closely() -> None:
    shares = np.array([np.pi, np.e, np.sqrt(2)])
    shares /= shares.sum()
    quotas = choose_quotas(shares)
    assert int(quotas.sum()) <= MAX_PERIOD
    assert float((np.abs(quotas / quotas.sum() - shares) / shares).max()) < 1e-4
