"""Steps: whole windows, ramps in tokens, and the step of a window."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from trainer.batches import step_of, steps, told_rounding
from trainer.settings import RunSettings


def plan(windows: int) -> Any:
    return SimpleNamespace(num_windows=windows, sequence_length=10)


def test_a_ramp_takes_the_batch_of_the_tokens_that_a_step_begins_at() -> None:
    planned = steps(((0, 20), (50, 40), (160, 90)), plan(40))
    assert [(s.number, s.position, s.windows) for s in planned] == [
        (1, 0, 2),
        (2, 2, 2),
        (3, 4, 2),  # begins at 40, before 50
        (4, 6, 4),
        (5, 10, 4),
        (6, 14, 4),
        (7, 18, 9),
        (8, 27, 9),
        (9, 36, 4),  # what is left
    ]
    assert [s.last for s in planned] == [False] * 8 + [True]
    assert [s.number for s in planned if s.crosses(100)] == [4, 7, 8, 9]
    assert step_of(planned, 17).number == 6
    assert step_of(planned, 18).number == 7


@given(
    st.integers(1, 200),
    st.lists(st.tuples(st.integers(1, 900), st.integers(1, 99)), max_size=4),
)
def test_steps_take_every_window_once(windows: int, entries: list[tuple[int, int]]) -> None:
    ramp = ((0, 20), *sorted(dict(entries).items()))
    planned = steps(ramp, plan(windows))
    seen = [at for s in planned for at in range(s.position, s.position + s.windows)]
    assert seen == list(range(windows))
    assert all(step_of(planned, at).position <= at for at in seen)
    assert [s.number for s in planned] == list(range(1, len(planned) + 1))
    longer = steps(ramp, plan(windows + 50))
    assert planned[:-1] == longer[: len(planned) - 1]  # a longer run has the same steps


def run(batch: object) -> RunSettings:
    model = {"width": 16, "depth": 1, "heads": 2, "kv_heads": 1, "ffn": 16}
    return RunSettings.model_validate(
        {"mixture": "m", "model": model, "tokens": "1M", "batch_tokens": batch}
    )


def test_amounts_of_a_ramp() -> None:
    assert run([[0, "16k"], ["1M", "64k"]]).batch_tokens == ((0, 16_000), (1_000_000, 64_000))
    assert run("16k").batch_tokens == 16_000
    assert told_rounding(((0, 25), (50, 40)), 10) == [
        "`batch_tokens: 25` becomes 20: a step takes whole windows, 2 of 10 tokens"
    ]


@pytest.mark.parametrize("ramp", [[[1, 5]], [[0, 5], [0, 6]], [[0, 5], [9, 5], [8, 5]]])
def test_a_ramp_that_does_not_rise_is_refused(ramp: list[list[int]]) -> None:
    with pytest.raises(ValidationError, match="the first from 0, each later than the one before"):
        run(ramp)
