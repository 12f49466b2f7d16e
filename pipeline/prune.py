"""What stands in a corpus and belongs to nothing any more goes."""

from __future__ import annotations

import shutil
from collections.abc import Container
from pathlib import Path

from pipeline.files import part_number
from pipeline.shards import spill_folder
from pipeline.stages import JOINS, Job, part_stage
from pipeline.transforms import heldout_index

# Of what the settings named before, and attached groups: they stay, but not their gone parts.
FORMER = ("signals/*", "edits/*", "places/*", "substrings", "tokens/*", "tokens/*/counts")


def prune(job: Job) -> None:
    """Delete what belongs to parts and spilled files that no input has any more, or has other names
    since."""
    parts = set(job.parts)
    wanted_parts: dict[Path, Container[int]] = {}
    for pattern in FORMER:
        wanted_parts |= dict.fromkeys(job.root.glob(pattern), parts)
    for stage in job.part_stages:
        outputs = part_stage(stage).outputs(job, 0)
        folders = [job.root / "stats" / job.record_name(stage), *(p.parent for p in outputs)]
        wanted_parts |= dict.fromkeys(folders, parts)
    for stage, join in JOINS.items():
        folders = [job.root / "stats" / stage, *(p.parent for p in join.outputs(job, 0))]
        wanted_parts |= dict.fromkeys(folders, range(join.partitions(job)))
    for folder, numbers in wanted_parts.items():
        for path in folder.glob("part-*"):
            if part_number(path) not in numbers:
                path.unlink()
    for rounds in ("joins/contraction", "stats/contraction"):  # components stand
        shutil.rmtree(job.root / rounds, ignore_errors=True)
    index = heldout_index.outputs(job.root)
    for path in set(index[0].parent.glob("*.npy")).difference(index):  # an earlier form of it
        path.unlink()
    files = {(shard.source, piece.file) for shard in job.shards for piece in shard.pieces}
    wanted = {spill_folder(key).name for key in files}
    for folder in (job.root / "cut").glob("*"):
        if folder.name not in wanted:
            shutil.rmtree(folder)
