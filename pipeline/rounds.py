"""Components in rounds: what one union-find cannot hold, as successive runs of Beam.

How many rounds there are only their counters tell, so they are no part of one pipeline. The first
run ends with the forests, where they have more edges than one process unites: its join of
components yields nothing, so nothing goes on from there. Then come the steps of
transforms/contraction.py, a run each, and a last run with what is left. A killed call goes on at
the step where it was: each partition of each has its commit record.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from pipeline import commits, elsewhere, heap
from pipeline.commits import Read
from pipeline.fingerprint import code, fingerprint
from pipeline.stages import JOINS, Job
from pipeline.staleness import Fingerprints, fingerprints_of, records
from pipeline.transforms import contraction
from pipeline.transforms.contraction import Step

STAGE = "components"
Work = Callable[[int], int]  # of a partition


def are_left(job: Job) -> bool:
    """Do the forests wait for rounds?"""
    job = elsewhere.here(job)
    if not contraction.is_needed(_num_edges(job)):
        return False
    return any(record is None for record in records(job, fingerprints_of(job), STAGE))


def _num_edges(job: Job) -> int:
    forests = records(job, fingerprints_of(job), "forest")
    return sum(record["counters"]["edges"] for record in forests if record is not None)


def run_rounds(job: Job, run: Callable[[str, int, Work], None]) -> int:
    """Make the components; returns the number of rounds.

    Args:
        run: of a name, a count and `work`, calls work(n) for each number below the count.
    """

    def step(step: Step) -> int:
        run(step.name, step.partitions, functools.partial(run_step, job, step))
        wanted = _print(fingerprints_of(job), step.name, step.partitions)
        numbers = range(step.partitions)
        made = (commits.record(job.root, step.name, number, wanted) for number in numbers)
        return sum(record["counters"].get("changed", 0) for record in made if record is not None)

    num_forests = JOINS["forest"].partitions(job)
    return contraction.in_rounds(num_forests, _num_edges(job), step)


def run_step(job: Job, step: Step, partition: int) -> int:
    """Make one partition of a step unless it stands; returns the partition."""
    job = elsewhere.here(job)
    commits.once(
        job.root,
        step.name,
        partition,
        _print(fingerprints_of(job), step.name, step.partitions),
        [step.output(job.root, partition)],
        functools.partial(step.work, job.root, partition),
        _reads(job, step, partition),
    )
    heap.give_back()
    return partition


def _reads(job: Job, step: Step, partition: int) -> list[Read]:
    prints = fingerprints_of(job)
    if step.reads is None:
        forests = range(partition, JOINS["forest"].partitions(job), step.partitions)
        return [("forest", number, prints.join("forest")) for number in forests]
    name, count = step.reads
    return [(name, number, _print(prints, name, count)) for number in range(count)]


def _print(prints: Fingerprints, name: str, count: int) -> str:
    if name == STAGE:
        return prints.join(STAGE)
    return fingerprint(prints.join("forest"), code(contraction.__name__), name, count)
