"""Evaluation items that stand in documents."""

from __future__ import annotations

from pipeline import evaluation_items
from pipeline.stage_kinds import Join, TextStage, once
from pipeline.transforms import decontaminate, edit, measure

TEXTS: dict[str, TextStage] = {
    f"signals/{decontaminate.NAME}": TextStage(
        ("ingest", "signals/language", "evaluation_items"),
        lambda job, part: measure.outputs(job.root, decontaminate.NAME, part),
        lambda job, part: measure.measure(
            job.root,
            decontaminate.NAME,
            decontaminate.group(job.root, job.settings.decontaminate),
            part,
        ),
    ),
    f"edits/{decontaminate.NAME}": TextStage(
        ("ingest", "signals/language", "evaluation_items"),
        lambda job, part: edit.outputs(job.root, decontaminate.NAME, part),
        lambda job, part: edit.edit(
            job.root,
            decontaminate.NAME,
            decontaminate.editor(job.root, job.settings.decontaminate),
            part,
        ),
        lambda _: ("id",),
    ),
}
JOINS: dict[str, Join] = {
    "evaluation_items": Join(
        once,
        (),
        lambda job, _: decontaminate.choose_outputs(job.root),
        lambda job, _: decontaminate.choose(
            job.root,
            job.settings.decontaminate,
            list(evaluation_items.read_items(job.settings.decontaminate)),
        ),
    ),
}
