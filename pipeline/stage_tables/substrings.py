"""Long stretches of text that stand in several places."""

from __future__ import annotations

from pipeline.stage_kinds import Join, PartStage, TextStage, partitions
from pipeline.transforms import edit, measure, substrings, substrings_join


def _grouped(which: str, *after: str) -> Join:
    return Join(
        partitions,
        (which, *after),
        lambda job, partition: [substrings.grouped_output(job.root, which, partition)],
        lambda job, partition: substrings_join.group(
            job.root, which, job.parts, partition, partitions(job)
        ),
    )


TEXTS: dict[str, TextStage] = {
    "stretches": TextStage(
        ("ingest",),
        lambda job, part: substrings.wind_outputs(job.root, part),
        lambda job, part: substrings.wind(job.root, job.settings.substrings, part),
    ),
}
PARTS: dict[str, PartStage] = {
    "extensions": PartStage(
        ("ingest", "grouped_stretches"),
        lambda job, part: substrings.named_outputs(job.root, "extensions", part),
        lambda job, shard: substrings.extend(
            job.root, job.settings.substrings, shard.part, partitions(job)
        ),
    ),
    "substrings": PartStage(
        ("ingest", "grouped_stretches", "grouped_extensions"),
        lambda job, part: substrings.place_outputs(job.root, part),
        lambda job, shard: substrings.place(
            job.root, job.settings.substrings, shard.part, partitions(job)
        ),
    ),
    "edits/substrings": PartStage(
        ("ingest", "substrings"),
        lambda job, part: edit.outputs(job.root, substrings.NAME, part),
        lambda job, shard: substrings.edit(job.root, shard.part),
    ),
    "signals/substrings": PartStage(
        ("ingest", "substrings"),
        lambda job, part: measure.outputs(job.root, substrings.NAME, part),
        lambda job, shard: substrings.measure(job.root, shard.part),
    ),
}
JOINS: dict[str, Join] = {
    "grouped_stretches": _grouped("stretches"),
    "grouped_extensions": _grouped("extensions", "stretches"),
}
