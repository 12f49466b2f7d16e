"""Documents that stand inside others."""

from __future__ import annotations

from pipeline.stage_kinds import Join, PartStage, TextStage, once, partitions
from pipeline.transforms import contained, contained_join

NAMES = (  # in order; the first is made in the sweep
    "contained_keys",
    "contained_filter",
    "contained_hits",
    "contained_proposals",
    "contained_candidates",
    "contained_shingles",
    "contained",
)
TEXTS: dict[str, TextStage] = {
    "contained_keys": TextStage(
        ("ingest",),
        lambda job, part: contained.key_outputs(job.root, part),
        lambda job, part: contained.find_keys(job.root, part),
    ),
}
PARTS: dict[str, PartStage] = {
    "contained_hits": PartStage(
        ("ingest", "contained_keys", "contained_filter"),
        lambda job, part: contained.hit_outputs(job.root, part),
        lambda job, shard: contained.find_hits(job.root, job.settings.near, shard.part),
    ),
    "contained_shingles": PartStage(
        ("ingest", "contained_candidates"),
        lambda job, part: contained.shingle_outputs(job.root, part),
        lambda job, shard: contained.shingle(job.root, job.settings.near, shard.part),
    ),
}
JOINS: dict[str, Join] = {
    "contained_filter": Join(
        once,
        ("contained_keys",),
        lambda job, _: [contained.filter_output(job.root)],
        lambda job, _: contained_join.make_filter(job.root, job.parts),
    ),
    "contained_proposals": Join(
        partitions,
        ("contained_keys", "contained_hits"),
        lambda job, partition: [contained_join.proposals_output(job.root, partition)],
        lambda job, partition: contained_join.propose(
            job.root, job.parts, partition, partitions(job)
        ),
    ),
    "contained_candidates": Join(
        once,
        ("contained_keys", "contained_proposals"),
        lambda job, _: contained.candidate_outputs(job.root),
        lambda job, _: contained_join.join(job.root, job.settings.near, job.parts, partitions(job)),
    ),
    "contained": Join(
        partitions,
        ("contained_candidates", "contained_shingles"),
        lambda job, partition: [contained_join.verify_output(job.root, partition)],
        lambda job, partition: contained_join.verify(
            job.root, job.settings.near, job.parts, partition, partitions(job)
        ),
    ),
}
