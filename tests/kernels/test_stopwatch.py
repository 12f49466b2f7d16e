from __future__ import annotations

import time
from typing import Any

from kernels import stopwatch
from kernels.compile import kernel


def test_compiling_is_left_out() -> None:
    @kernel
    def halves(n: int) -> int:
        found = 0
        while n > 1:
            n //= 2
            found += 1
        return found

    assert halves(1024) == 10
    compiled: Any = halves
    cpu_began, began = time.process_time(), stopwatch.spent()
    compiled.recompile()
    everything, (_, measured) = time.process_time() - cpu_began, stopwatch.since(began)
    assert measured < everything / 3  # what is left of some 0.05 s is saving it


def test_other_work_is_not() -> None:
    cpu_began, began = time.process_time(), stopwatch.spent()
    sum(range(1_000_000))
    seconds, measured = stopwatch.since(began)
    assert 0 < measured <= time.process_time() - cpu_began
    assert seconds > 0
