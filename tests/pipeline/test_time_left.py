"""How long a run will still take, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.time_left import Mark, pace, seconds_left
from pipeline.watch import Stage


def stage(missing: int, made: int, cpu_seconds: float) -> Stage:
    return Stage(missing, Path(), {}, made, cpu_seconds=cpu_seconds)


STAGES = {
    "ingest": stage(10, 5, 10.0),
    "tokens": stage(10, 2, 2.0),
    "signatures": stage(10, 0, 0.0),
    "pairs": stage(16, 0, 0.0),
}


def test_what_is_left_by_hand() -> None:
    # 5 x 2 s + 8 x 1 s + 10 x 12/7 s = 35.1 s of CPU, at half a second each
    assert seconds_left(STAGES, 0.5) == pytest.approx((10 + 8 + 120 / 7) / 2)
    assert seconds_left(STAGES, None) is None


def test_the_pace_leaves_out_what_came_before_the_first_part() -> None:
    assert pace([]) is None
    assert pace([Mark(60.0, 2.0)]) is None, "all of it may have been compilation"
    assert pace([Mark(60.0, 2.0), Mark(61.0, 4.0)]) == 0.5
    assert pace([Mark(60.0, 2.0), Mark(61.0, 2.0)]) is None, "nothing was measured in between"


def test_the_pace_is_that_of_the_last_half() -> None:
    slow = [Mark(10.0, 1.0), Mark(40.0, 2.0)]
    assert pace(slow) == 30.0
    assert pace([*slow, Mark(50.0, 22.0), Mark(60.0, 42.0)]) == 0.5
    assert pace([Mark(1.0, 1.0), Mark(2.0, 2.0), Mark(100.0, 4.0)]) == 49.0, "two marks at least"


def test_after_kernels_were_compiled_the_time_left_is_not_theirs() -> None:
    """40 seconds of compiling, then a part each second: 8 parts are left."""
    stages = {"tokens": stage(12, 4, 4.0)}
    marks = [Mark(40.0 + n, float(n)) for n in range(1, 5)]
    assert seconds_left(stages, pace(marks)) == 8.0
