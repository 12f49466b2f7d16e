"""Near duplicates: the stages in order are signatures, forest, components, candidates, pairs."""

from __future__ import annotations

from pipeline.stage_kinds import Join, PartStage, TextStage, once, partitions
from pipeline.transforms import near, near_join

TEXTS: dict[str, TextStage] = {
    "signatures": TextStage(
        ("ingest",),
        lambda job, part: near.sign_outputs(job.root, part),
        lambda job, part: near.sign(job.root, job.settings.near, part),
        lambda job: ("url",),
    ),
}
PARTS: dict[str, PartStage] = {
    "candidates": PartStage(
        ("ingest", "components"),
        lambda job, part: near.shingle_outputs(job.root, part),
        lambda job, shard: near.shingle(job.root, job.settings.near, shard.part, partitions(job)),
    ),
}
JOINS: dict[str, Join] = {
    "forest": Join(
        partitions,
        ("signatures",),
        lambda job, partition: [near_join.forest_output(job.root, partition)],
        lambda job, partition: near_join.forest(
            job.root, job.settings.near, job.parts, partition, partitions(job)
        ),
    ),
    "components": Join(  # or by rounds.py
        once,
        ("forest",),
        lambda job, _: [near.components_output(job.root)],
        lambda job, _: near_join.join(job.root, partitions(job)),
    ),
    "pairs": Join(
        partitions,
        ("candidates",),
        lambda job, partition: near_join.verify_outputs(job.root, partition),
        lambda job, partition: near_join.verify(
            job.root, job.settings.near, job.parts, partition, partitions(job)
        ),
    ),
}
