"""One Beam pipeline for every runner. Elements are references: a shard, or a number.

Text never travels: a step reads files of the corpus and writes files of the corpus. What must meet
meets in GroupByKey as part numbers; the packed key files stay where they are.

    shards -> ingest -> language -> nominees               (one worker, one part)
                                                              where asked for, before nominees:
                                                              pages that name each other, a join
           -> heldout, evaluation_items                    (joins: of all parts, of given files)
           -> sweep: signals, tokens, signatures, matches  (one pass over the text of a part)
           -> across (by partition) -> signals and edits of what stands in several documents
           -> forest (by partition) -> components -> candidates -> pairs (by partition)
           -> the stages of repeated substrings, where corpus.yaml asks for them
           -> where asked for, what is contained in what: see transforms/contained.py
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator

import apache_beam as beam

from pipeline import disk, rounds, turns
from pipeline.elsewhere import here
from pipeline.run import run_join, run_part, run_sweep
from pipeline.shards import Shard
from pipeline.stages import JOINS, Job

LANGUAGE = ("signals/language",)  # a sweep of its own: other stages go by the language


def build(pipeline: beam.Pipeline, job: Job, lanes: int | None = None) -> None:
    """Add the steps of `prepare` to a pipeline.

    Args:
        lanes: workers of one machine, each of which takes the next part when it is free; None
            where workers share no disk: parts are dealt to them beforehand.
    """
    shards = pipeline | "Start" >> beam.Create([0]) | "Shards" >> AllShards(job, "ingest", lanes)
    shards |= "Ingest" >> beam.Map(_part, job, "ingest").with_output_types(Shard)
    shards |= "Language" >> beam.Map(_sweep, job, LANGUAGE).with_output_types(Shard)
    for name in job.linked:
        joined = shards | f"Join {name}" >> Join(job, name)
        shards = joined | "Parts to nominate" >> AllShards(job, "nominees", lanes)
    shards |= "Nominees" >> beam.Map(_part, job, "nominees").with_output_types(Shard)
    chosen = shards | "Join heldout" >> Join(job, "heldout")
    for name in job.chosen:
        chosen |= f"Join {name}" >> Join(job, name)
    listed = chosen | "Parts to sweep" >> AllShards(job, "sweep", lanes)
    swept = listed | "Sweep" >> beam.Map(_sweep, job, job.sweep).with_output_types(Shard)
    if job.across:
        met = swept | "Join across" >> Join(job, "across")
        swept = met | "Parts to tell" >> AllShards(job, "across", lanes)
        for name in job.across:
            swept |= f"Tell {name}" >> beam.Map(_part, job, name).with_output_types(Shard)
    near_duplicates(swept, job, lanes)


def near_duplicates(signed: beam.PCollection, job: Job, lanes: int | None) -> None:
    """Add the joins that wait for all signatures."""
    forests = signed | "Join forest" >> Join(job, "forest")
    joined = forests | "Join components" >> Join(job, "components")
    verified(joined, job, lanes)


def verified(joined: beam.PCollection, job: Job, lanes: int | None) -> None:
    """Add what waits for the components."""
    listed = joined | "Parts to shingle" >> AllShards(job, "candidates", lanes)
    shingled = listed | "Candidates" >> beam.Map(_part, job, "candidates").with_output_types(Shard)
    paired = shingled | "Join pairs" >> Join(job, "pairs")
    _ = _with_others(paired, job, lanes)


def _with_others(before: beam.PCollection, job: Job, lanes: int | None) -> beam.PCollection:
    """What corpus.yaml may ask for: joins wait for all parts, what stands between two of them goes
    part by part."""
    for stages in _runs((*job.contained[1:], *job.substrings)):
        if stages[0] in JOINS:
            before |= f"Join {stages[0]}" >> Join(job, stages[0])
            continue
        before |= f"Parts of {stages[0]}" >> AllShards(job, stages[0], lanes)
        for name in stages:
            before |= name.capitalize() >> beam.Map(_part, job, name).with_output_types(Shard)
    return before


def _runs(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Each join by itself, what goes part by part together."""
    for is_join, found in itertools.groupby(names, JOINS.__contains__):
        run = tuple(found)
        yield from zip(run) if is_join else (run,)


def build_step(pipeline: beam.Pipeline, name: str, count: int, work: rounds.Work) -> None:
    """One step of rounds.py in a pipeline of its own."""
    start = pipeline | "Start" >> beam.Create([0])
    _ = start | name >> Each(count, functools.partial(_work, work))


def build_rest(pipeline: beam.Pipeline, job: Job, lanes: int | None = None) -> None:
    """What is left when rounds.py has made the components."""
    verified(pipeline | "Start" >> beam.Create([0]), job, lanes)


def build_sweep(
    pipeline: beam.Pipeline, job: Job, lanes: int | None = None, *, stages: tuple[str, ...]
) -> None:
    """Some text stages alone, of a corpus that stands."""
    start = pipeline | "Start" >> beam.Create([0])
    shards = start | "Shards" >> AllShards(job, "sweep", lanes)
    _ = shards | "Sweep" >> beam.Map(_sweep, job, stages).with_output_types(Shard)


class Join(beam.PTransform):
    """Wait for all elements, then run every partition of a join once; yields the partitions."""

    def __init__(self, job: Job, stage: str) -> None:
        super().__init__()
        self.job, self.stage = job, stage

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        made = functools.partial(_join, self.job, self.stage)
        return elements | Each(JOINS[self.stage].partitions(self.job), made)


class Each(beam.PTransform):
    """Wait for all elements, then call `work` for each number below `count`."""

    def __init__(self, count: int, work: Callable[[int], Iterable[int]]) -> None:
        super().__init__()
        self.count, self.work = count, work

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        return (
            elements
            | "To partitions"
            >> beam.FlatMap(_to_partitions, self.count).with_output_types(tuple[int, int])
            | "Group" >> beam.GroupByKey()
            | "Number" >> beam.Map(_key).with_output_types(int)
            | "Run" >> beam.FlatMap(self.work).with_output_types(int)
        )


class AllShards(beam.PTransform):
    """A single element to all shards, over all workers; the list comes from inputs.json.

    What is dealt are numbers: of parts, or of the lanes that take turns.
    """

    def __init__(self, job: Job, queue: str, lanes: int | None) -> None:
        super().__init__()
        self.job, self.queue, self.lanes = job, queue, lanes

    def expand(self, start: beam.PCollection) -> beam.PCollection:
        if self.lanes is None:
            listed, take = beam.FlatMap(_parts, self.job), beam.Map(_shard, self.job)
        else:
            listed = beam.FlatMap(_numbers, self.lanes)
            take = beam.FlatMap(_take_turns, self.job, self.queue)
        return (
            start
            | "List" >> listed.with_output_types(int)
            | "Spread" >> Spread()
            | "Take" >> take.with_output_types(Shard)
        )


class Spread(beam.PTransform):
    """Deal numbers to all workers. Not Reshuffle, which PySpark's runner cannot do."""

    def expand(self, numbers: beam.PCollection) -> beam.PCollection:
        return (
            numbers
            | "Key" >> beam.Map(_keyed).with_output_types(tuple[int, int])
            | "Group" >> beam.GroupByKey()
            | "Number" >> beam.Map(_key).with_output_types(int)
        )


def _part(shard: Shard, job: Job, stage: str) -> Shard:
    with disk.explained(job.root):
        return run_part(job, stage, shard)


def _sweep(shard: Shard, job: Job, stages: tuple[str, ...]) -> Shard:
    with disk.explained(job.root):
        return run_sweep(job, stages, shard)


def _join(job: Job, stage: str, partition: int) -> Iterator[int]:
    with disk.explained(job.root):
        if stage == rounds.STAGE and rounds.are_left(job):
            return
        yield run_join(job, stage, partition)


def _work(work: rounds.Work, number: int) -> Iterator[int]:
    yield work(number)


def _to_partitions(_: object, partitions: int) -> Iterator[tuple[int, int]]:
    for partition in range(partitions):
        yield partition, 0


def _parts(_: int, job: Job) -> Iterator[int]:
    yield from (shard.part for shard in _largest_first(here(job)))


def _shard(part: int, job: Job) -> Shard:
    job = here(job)
    return job.shards[bisect.bisect_left(job.parts, part)]


def _numbers(_: int, count: int) -> Iterator[int]:
    yield from range(count)


def _take_turns(_: int, job: Job, queue: str) -> Iterator[Shard]:
    shards = _largest_first(job)
    with disk.explained(job.root):
        for number in turns.take(job.root, queue, len(shards)):
            yield shards[number]


def _largest_first(job: Job) -> list[Shard]:
    """So that no worker is left alone with a large one at the end."""
    return sorted(job.shards, key=lambda shard: (-shard.text_bytes, shard.part))


def _keyed(number: int) -> tuple[int, int]:
    return number, 0


def _key(group: tuple[int, Iterable[int]]) -> int:
    return int(group[0])
