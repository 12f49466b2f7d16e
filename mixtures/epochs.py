"""How often a source is seen, and where it ends.

An epoch is as many windows as hold its unique tokens: what is left of copies, each document once.
So `repeats` and `repeats_by` use up `max_epochs` as a longer run does.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable

from mixtures.packed import Packed
from mixtures.select import SourceCounts
from pipeline.config import ConfigError

FOREVER = 2**52  # windows; no run reads so many


def epoch_windows(count: SourceCounts, packed: Packed) -> float:
    """Windows that hold as many tokens as a source has unique ones.

    Raises:
        ConfigError: its tokens do not fill one window.
    """
    if not packed.num_windows:
        raise ConfigError(
            f"source {count.name!r}: {packed.tokens_in} tokens do not fill one window of "
            f"{packed.packing.sequence_length}; widen its `where`, add data, or lower "
            "`sequence_length`"
        )
    return packed.num_windows * (count.unique_tokens / count.num_tokens)


def ends_at(windows: Callable[[int], int], most: float) -> int | None:
    """Windows of the run after which a source has had `most` windows and would get one more; None
    where it never does.

    Args:
        windows: of the source, among so many of the run.
    """
    end = 1
    while windows(end) <= most:
        end *= 2
        if end > FOREVER:
            return None
    return bisect_right(range(end + 1), math.floor(most), key=windows) - 1


def check_epochs(
    name: str,
    epoch: float,
    max_epochs: float,
    windows: Callable[[int], int],
    total: int,
    sequence_length: int,
) -> None:
    """Refuse a run of `total` windows that sees a source more often than `max_epochs`."""
    needed = windows(total)
    if needed <= max_epochs * epoch:
        return
    fits = ends_at(windows, max_epochs * epoch) or 0
    raise ConfigError(
        f"source {name!r} would repeat {needed / epoch:.2f} times ({needed:,} windows from "
        f"{epoch:,.10g}), more than its `max_epochs: {max_epochs:g}`; lower its `weight`, raise "
        f"`max_epochs`, add data to it, or train on at most {fits * sequence_length:,} tokens; "
        "with `short: unimax` other sources take over what it lacks"
    )
