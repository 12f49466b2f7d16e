"""Frozen evaluation text, and what of the corpus repeats it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline import frozen, given
from pipeline.stage_kinds import Join, PartStage, TextStage, once
from pipeline.transforms import heldout, heldout_index, heldout_match, hreflang

if TYPE_CHECKING:
    from pipeline.stages import Job


def _choose(job: Job) -> dict[str, Any]:
    held = job.settings.heldout
    folders = given.kept_folders(held)
    frozen.check(job.root, held, folders)
    texts, rejected = given.independent(held, job.root)
    chosen = heldout.choose(
        job.root,
        held,
        frozen.kept(folders),
        texts,
        {shard.part: shard.source for shard in job.shards},
    )
    heldout_index.write(job.root, held, job.settings.near)
    return chosen | {
        "independent_records": len(texts) + len(rejected),
        "independent_rejected": len(rejected),
        "rejected": rejected,
    }


PARTS: dict[str, PartStage] = {
    "nominees": PartStage(
        ("ingest", "signals/language"),
        lambda job, part: heldout.nominate_outputs(job.root, part),
        lambda job, shard: heldout.nominate(
            job.root,
            job.settings.heldout,
            tuple(job.settings.languages),
            shard.part,
            job.settings.translation_group,
        ),
    ),
}
TEXTS: dict[str, TextStage] = {
    "matches": TextStage(
        ("ingest", "heldout"),
        lambda job, part: heldout_match.outputs(job.root, part),
        lambda job, part: heldout_match.match(
            job.root, job.settings.heldout, job.settings.near, part
        ),
    ),
}
JOINS: dict[str, Join] = {
    "translations": Join(
        once,
        ("ingest",),
        lambda job, _: hreflang.outputs(job.root),
        lambda job, _: hreflang.join(job.root, job.parts),
    ),
    "heldout": Join(
        once,
        ("nominees",),
        lambda job, _: [*heldout.choose_outputs(job.root), *heldout_index.outputs(job.root)],
        lambda job, _: _choose(job),
    ),
}
