"""The learning rate: values of each shape, and no jump anywhere."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from trainer.recipe import Branch, Schedule
from trainer.schedule import learning_rate

SHAPES = ("wsd", "cosine", "linear", "constant")


def schedule(shape: str, **keys: float) -> Schedule:
    return Schedule.model_validate({"shape": shape, **keys})


@pytest.mark.parametrize(
    ("shape", "rates"),  # after 0, 50, 100, 325, 550, 1000 of 1000 tokens, peak 2, warmup 100
    [
        ("wsd", (0.0, 1.0, 2.0, 2.0, 2.0, 0.2)),
        ("linear", (0.0, 1.0, 2.0, 1.55, 1.1, 0.2)),
        ("cosine", (0.0, 1.0, 2.0, 0.2 + 1.8 * (1 + math.sqrt(0.5)) / 2, 1.1, 0.2)),
        ("constant", (0.0, 1.0, 2.0, 2.0, 2.0, 2.0)),
    ],
)
def test_values(shape: str, rates: tuple[float, ...]) -> None:
    keys = schedule(shape, warmup=0.1, final=0.1)
    found = [learning_rate(keys, 2.0, tokens, 1000) for tokens in (0, 50, 100, 325, 550, 1000)]
    assert found == pytest.approx(rates, abs=1e-12)


@given(
    st.sampled_from(SHAPES),
    st.floats(0.01, 0.9),
    st.floats(0.01, 0.9),
    st.floats(0, 0.9),
    st.integers(0, 9_999),
)
def test_no_jump_and_never_above_the_peak(
    shape: str, warmup: float, decay: float, final: float, tokens: int
) -> None:
    keys = schedule(
        shape, warmup=warmup, final=final, **({"decay": decay} if shape == "wsd" else {})
    )
    here, next_ = (learning_rate(keys, 1.0, at, 10_000) for at in (tokens, tokens + 1))
    assert 0 <= here <= 1
    steepest = max(1 / warmup, 1 / decay, math.pi / 2 / (1 - warmup)) / 10_000
    assert abs(here - next_) <= steepest * 1.0001


def test_a_branch_begins_at_the_rate_of_its_parent_and_ends_at_final() -> None:
    keys = schedule("wsd", warmup=100, decay=200, final=0.1)
    branch = Branch.model_validate(
        {"from": "p", "at": "step-4", "decay": 400, "begin": 600, "share": 1.0}
    )
    rates = [learning_rate(keys, 3.0, at, 1000, branch) for at in (600, 800, 1000)]
    assert rates == pytest.approx([3.0, 3.0 * 0.55, 0.3])
    low = branch.model_copy(update={"share": 0.05})  # the parent was below `final`: no way up
    assert learning_rate(keys, 3.0, 800, 1000, low) == pytest.approx(0.15)


def test_decay_is_of_wsd_alone() -> None:
    with pytest.raises(ValidationError, match="`decay: 0.3` says nothing with `shape: cosine`"):
        schedule("cosine", decay=0.3)
