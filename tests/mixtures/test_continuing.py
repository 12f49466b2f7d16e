"""A run goes on with another plan exactly where both read the same windows up to there."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planned_by_hand import END, plan_of, source

from mixtures.continuing import first_difference, why_not
from mixtures.loader import Loader
from mixtures.loader_state import StateError
from mixtures.plan import Plan


def sequence(plan: Plan, windows: int) -> list[tuple[str, int]]:
    index, number = plan.schedule.locate(np.arange(windows))
    return [(plan.sources[i].selection, n) for i, n in zip(index, number.tolist(), strict=True)]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    names = draw(st.permutations("abc"))
    ends = sorted(draw(st.sets(st.sampled_from([1, 6, 12, 24, 100, 150]), max_size=3)))
    weights = st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any)
    phases = [(end, draw(weights)) for end in [*ends, END]]
    return plan_of("".join(names), *phases)


@given(plans(), plans(), st.integers(0, END))
@settings(max_examples=200, deadline=None)
def test_the_first_difference_is_that_of_the_sequences(
    before: Plan, after: Plan, windows: int
) -> None:
    pairs = list(zip(sequence(before, windows), sequence(after, windows), strict=True))
    expected = next((at for at, (one, two) in enumerate(pairs) if one != two), None)
    assert first_difference(before, after, windows) == expected
    assert (why_not(before, after, windows) is None) == (expected is None)


def test_the_comparison_does_not_depend_on_how_far_a_run_is() -> None:
    one = plan_of("ab", (END, [61_803, 38_197]))
    two = plan_of("ab", (END, [61_804, 38_196]))
    assert first_difference(one, replace(one, tokens=9), 10**12) is None
    found = first_difference(one, two, 10**12)
    assert sequence(one, 304) == sequence(two, 304)
    assert sequence(one, 305) != sequence(two, 305)
    assert found == 304


def test_a_border_that_changes_nothing() -> None:
    whole, cut = plan_of("ab", (END, [2, 1])), plan_of("ab", (30, [2, 1]), (END, [4, 2]))
    assert whole.fingerprint != cut.fingerprint
    assert first_difference(whole, cut, END) is None


BEFORE = plan_of("ab", (END, [3, 1]))


@pytest.mark.parametrize(
    "after",
    [
        plan_of("ab", (200, [3, 1]), (END, [1, 3])),
        plan_of("ab", (300, [3, 1]), (END, [1, 3])),
        plan_of("anb", (200, [3, 0, 1]), (END, [1, 1, 1])),
        plan_of("nab", (200, [0, 3, 1]), (END, [1, 0, 1])),
        plan_of("ab", (200, [3, 1]), (250, [1, 0]), (END, [3, 1])),
    ],
)
def test_a_change_from_where_the_run_stands(after: Plan) -> None:
    state = Loader(BEFORE).state(200)
    assert Loader(after).resume(state, BEFORE) == 200
    with pytest.raises(StateError, match="belongs to plan"):
        Loader(after).resume(state)
    with pytest.raises(StateError, match="belongs to plan"):
        Loader(after).resume(state, after)  # not the plan of the state


CUT = (200, [3, 1]), (END, [1, 1])


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (
            plan_of("ab", (100, [3, 1]), (END, [1, 3])),
            r"window 100 came from source 'a', and would come from 'b': the weights, phases or "
            r"order .* begin after them: in a phase that follows one with `until: 1600`, or more",
        ),
        (plan_of("ba", (END, [1, 3])), r"window \d came from source"),
        (plan_of("ac", *CUT), "source 'b' is gone, of which the run has read windows; put it back"),
        (
            replace(plan_of("ab", *CUT), sources=(source("a"), source("b", "x" * 32))),
            f"source 'b' has other documents now (selection {'b' * 32}, now {'x' * 32}): its",
        ),
        (replace(BEFORE, seed=6), "`seed` was 5, now 6; put the former value back"),
        (replace(BEFORE, sequence_length=16), "`sequence_length` was 8, now 16"),
    ],
)
def test_what_cannot_go_on_is_named(after: Plan, message: str) -> None:
    found = why_not(BEFORE, after, 200)
    assert found is not None
    assert re.search(message if "\\" in message or ".*" in message else re.escape(message), found)
    with pytest.raises(StateError, match="belongs to plan"):
        Loader(after).resume(Loader(BEFORE).state(200), BEFORE)


def test_one_selection_that_two_sources_read_has_two_cursors() -> None:
    twice = (source("a"), source("z", "a" * 32))
    one = replace(plan_of("az", (200, [1, 0]), (END, [0, 1])), sources=twice)
    two = replace(plan_of("az", (200, [1, 0]), (END, [1, 0])), sources=twice)
    assert first_difference(one, two, END) == 200
    assert first_difference(one, two, 200) is None


def test_another_name_is_no_other_source() -> None:
    renamed = replace(BEFORE, sources=(source("books", "a" * 32), source("b")))
    assert why_not(BEFORE, renamed, END) is None


def test_windows_that_are_shuffled_otherwise_are_other_windows() -> None:
    before = plan_of("ab", (END, [1, 1]))
    after = replace(before, sources=tuple(replace(s, order="f" * 32) for s in before.sources))
    assert before.fingerprint != after.fingerprint
    assert first_difference(before, after, 1) == 0
    assert "the windows of source 'a' are shuffled otherwise" in str(why_not(before, after, 1))
    with pytest.raises(StateError, match=f"source 'a': order was , is {'f' * 32}; source 'b'"):
        Loader(after).resume(Loader(before).state(4))
