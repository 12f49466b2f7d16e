"""Lines and paragraphs that stand in many documents."""

from __future__ import annotations

from pipeline.dedup_settings import UNITS
from pipeline.stage_kinds import Join, PartStage, TextStage, partitions
from pipeline.transforms import across, across_edits, measure, pieces


def _edits(unit: str) -> PartStage:
    return PartStage(
        ("ingest", "pieces", "across"),
        lambda job, part: across_edits.outputs(job.root, unit, part),
        lambda job, shard: across_edits.edited(
            job.root, job.settings.across, unit, shard.part, partitions(job)
        ),
    )


TEXTS: dict[str, TextStage] = {
    "pieces": TextStage(
        ("ingest",),
        lambda job, part: pieces.outputs(job.root, part),
        lambda job, part: pieces.pieces(job.root, job.settings.across, part),
        lambda _: pieces.READS,
    ),
}
PARTS: dict[str, PartStage] = {
    f"signals/{across_edits.NAME}": PartStage(
        ("ingest", "pieces", "across"),
        lambda job, part: measure.outputs(job.root, across_edits.NAME, part),
        lambda job, shard: across_edits.measured(
            job.root, job.settings.across, shard.part, partitions(job)
        ),
    ),
    **{f"edits/{unit}": _edits(unit) for unit in UNITS},
}
JOINS: dict[str, Join] = {
    "across": Join(
        partitions,
        ("pieces",),
        lambda job, partition: [across.output(job.root, partition)],
        lambda job, partition: across.join(
            job.root, job.settings.across, job.parts, partition, partitions(job)
        ),
    ),
}
