"""One Beam pipeline for every runner. Elements are references: a shard, or a number.

Text never travels: a step reads files of the corpus and writes files of the corpus. What must meet
meets in GroupByKey as part numbers; the packed key files stay where they are.

    shards -> ingest -> language -> nominees               (one worker, one part)
           -> heldout                                      (a join: of all parts)
           -> sweep: signals, tokens, signatures, matches  (one pass over the text of a part)
           -> forest (by partition) -> components -> candidates -> pairs (by partition)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from pipeline.run import run_join, run_part, run_sweep
from pipeline.shards import Shard
from pipeline.stages import JOINS, Job

LANGUAGE = ("signals/language",)  # a sweep of its own: other stages go by the language


def build(pipeline: beam.Pipeline, job: Job) -> None:
    """Add the steps of `prepare` to a pipeline."""
    shards = pipeline | "Start" >> beam.Create([0]) | "Shards" >> AllShards(job)
    shards |= "Ingest" >> beam.Map(_part, job, "ingest").with_output_types(Shard)
    shards |= "Language" >> beam.Map(_sweep, job, LANGUAGE).with_output_types(Shard)
    shards |= "Nominees" >> beam.Map(_part, job, "nominees").with_output_types(Shard)
    chosen = shards | "Join heldout" >> Join(job, "heldout")
    listed = chosen | "Parts to sweep" >> AllShards(job)
    swept = listed | "Sweep" >> beam.Map(_sweep, job, job.sweep).with_output_types(Shard)
    forests = swept | "Join forest" >> Join(job, "forest")
    joined = forests | "Join components" >> Join(job, "components")
    listed = joined | "Parts to shingle" >> AllShards(job)
    shingled = listed | "Candidates" >> beam.Map(_part, job, "candidates").with_output_types(Shard)
    _ = shingled | "Join pairs" >> Join(job, "pairs")


class Join(beam.PTransform):
    """Wait for all elements, then run every partition of a join once; yields the partitions."""

    def __init__(self, job: Job, stage: str) -> None:
        super().__init__()
        self.job, self.stage = job, stage

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        return (
            elements
            | "To partitions"
            >> beam.FlatMap(_to_partitions, JOINS[self.stage].partitions).with_output_types(
                tuple[int, int]
            )
            | "Group" >> beam.GroupByKey()
            | "Run" >> beam.Map(_join, self.job, self.stage).with_output_types(int)
        )


class AllShards(beam.PTransform):
    """A single element to all shards, dealt to all workers; the list comes from inputs.json."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job = job

    def expand(self, start: beam.PCollection) -> beam.PCollection:
        listed = start | "List" >> beam.FlatMap(_all_shards, self.job).with_output_types(Shard)
        return listed | "Spread" >> spread()


def spread() -> beam.PTransform:
    """Deal elements to all workers. In one place: PySpark's runner fails on Reshuffle."""
    return beam.Reshuffle()


def _part(shard: Shard, job: Job, stage: str) -> Shard:
    return run_part(job, stage, shard)


def _sweep(shard: Shard, job: Job, stages: tuple[str, ...]) -> Shard:
    return run_sweep(job, stages, shard)


def _join(group: tuple[int, Iterable[int]], job: Job, stage: str) -> int:
    return run_join(job, stage, int(group[0]))


def _to_partitions(_: object, partitions: int) -> Iterator[tuple[int, int]]:
    for partition in range(partitions):
        yield partition, 0


def _all_shards(_: int, job: Job) -> Iterator[Shard]:
    yield from job.shards
