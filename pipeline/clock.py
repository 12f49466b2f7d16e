"""Seconds as people read them, and lines that come now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def clock(seconds: float) -> str:
    """`0:07`, `12:30`, `3:05:00`."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def telling(items: Iterable[T], say: Callable[[int], str], every_seconds: float) -> Iterator[T]:
    """The items; when `every_seconds` are over, a line on stderr: what `say` makes of how many
    there were."""
    told = time.monotonic()
    for done, item in enumerate(items):
        if time.monotonic() - told > every_seconds:
            told = time.monotonic()
            print(say(done), file=sys.stderr, flush=True)
        yield item
