"""The three kinds of stages of `prepare`; those that there are stand in stage_tables/."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.transforms import near_join
from pipeline.transforms.sweep import Stage

if TYPE_CHECKING:
    from pipeline.shards import Shard
    from pipeline.stages import Job


@dataclass(frozen=True)
class PartStage:
    """Makes part N of a table from part N of others, and from joins."""

    after: tuple[str, ...]  # stages that it reads
    outputs: Callable[[Job, int], list[Path]]
    work: Callable[[Job, Shard], dict[str, Any]]  # writes the outputs, returns counters


@dataclass(frozen=True)
class TextStage:
    """Makes part N of a table from the text of part N, in one pass with others: see sweep.py."""

    after: tuple[str, ...]
    outputs: Callable[[Job, int], list[Path]]
    steps: Callable[[Job, int], Stage]
    reads: Callable[[Job], tuple[str, ...]] = lambda _: ()  # columns of documents beside text


@dataclass(frozen=True)
class Join:
    """Makes each of `partitions` from all parts of what it reads."""

    partitions: Callable[[Job], int]
    after: tuple[str, ...]
    outputs: Callable[[Job, int], list[Path]]
    work: Callable[[Job, int], dict[str, Any]]


def partitions(job: Job) -> int:
    """Of the joins for copies: by the size of the input, never by workers."""
    return near_join.partitions(sum(shard.text_bytes for shard in job.shards))


def once(_: Job) -> int:
    """Of a join that sees all parts at once."""
    return 1
