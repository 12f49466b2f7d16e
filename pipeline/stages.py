"""The stages of `prepare`: one visible table of what each reads, what it makes, and how.

Stages of a part run one after another in one worker; joins see all parts. `staleness.py` tells what
has to be made, `run.py` makes it, `build.py` wires it into a Beam pipeline.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline import evaluation_items, forgotten, frozen, given
from pipeline.groups import editors, groups
from pipeline.settings import UNITS, CorpusSettings, Input, Tokenizer
from pipeline.shards import Shard, load_shards
from pipeline.tokenizer import Encoder, load
from pipeline.tokenizer_engines import Engine
from pipeline.transforms import (
    across,
    across_edits,
    contained,
    contained_join,
    decontaminate,
    edit,
    heldout,
    heldout_index,
    heldout_match,
    ingest,
    measure,
    near,
    near_join,
    pieces,
    substrings,
    substrings_join,
    tokenize,
)
from pipeline.transforms.sweep import Stage


@dataclass(frozen=True)
class Job:
    """All that a worker needs to know; it travels with every step, so shards stay in inputs.json
    and the tokenizer in the corpus."""

    root: Path
    settings: CorpusSettings = field(compare=False)  # 1,000 sources are compared by their digest
    digest: str  # of the settings
    tokenizer: Tokenizer  # the corpus's own copy, and the policy
    tokenizer_hash: str
    engine: Engine
    prints: tuple[tuple[str, str], ...]  # fingerprint of each stage by itself: see staleness.py
    id_bound: int | None = None  # with --limit: ids below are in the sample
    store: str = ""  # URL of the corpus where `root` is only a cache of it: see store.py
    lease: int = 0  # the fencing number under which it is written

    @property
    def sweep(self) -> tuple[str, ...]:
        """What is made in one pass over the text of a part, when languages and held-out sets are
        known, in order."""
        measured = (f"signals/{name}" for name in groups(self.settings) if name != "language")
        edited = (f"edits/{name}" for name in editors(self.settings))
        by_text = [name for name in (*measured, *edited) if name not in PART_STAGES]
        met = ("pieces",) if self.settings.across.units else ()
        repeated = ("stretches",) if self.substrings else ()
        keyed = self.contained[:1]
        return (*by_text, "tokens", "signatures", *keyed, "matches", *met, *repeated)

    @property
    def across(self) -> tuple[str, ...]:
        """What is told of a part when its lines and paragraphs have met those of all others."""
        if not self.settings.across.units:
            return ()
        units = (name for name in self.settings.edits if name in self.settings.across.units)
        return ("signals/across", *(f"edits/{name}" for name in units))

    @property
    def substrings(self) -> tuple[str, ...]:
        """The stages of repeated substrings after the sweep, joins among them, in order."""
        if self.settings.substrings.min_bytes is None:
            return ()
        edited = ("edits/substrings",) if substrings.NAME in self.settings.edits else ()
        met = ("grouped_stretches", "extensions", "grouped_extensions", "substrings")
        return (*met, *edited, "signals/substrings")

    @property
    def part_stages(self) -> tuple[str, ...]:
        """All stages that go part by part."""
        others = (*self.contained[1:], *self.substrings)
        joined = (name for name in others if name not in JOINS)
        return (*FIRST, *self.sweep, *self.across, "candidates", *joined)

    @property
    def stages(self) -> tuple[str, ...]:
        """All stages and joins, in order."""
        near_duplicates = ("forest", "components", "candidates", "pairs", *self.contained[1:])
        across = ("across", *self.across) if self.across else ()
        swept = (*FIRST, "heldout", *self.chosen, *self.sweep)
        return (*swept, *across, *near_duplicates, *self.substrings)

    @property
    def contained(self) -> tuple[str, ...]:
        """What finds documents inside others, in order: the first in the sweep."""
        return CONTAINED if self.settings.near.containment is not None else ()

    @property
    def chosen(self) -> tuple[str, ...]:
        """The join of evaluation sets, where there are any."""
        return ("evaluation_items",) if self.settings.decontaminate.sets else ()

    @property
    def shards(self) -> list[Shard]:
        return load_shards(self.root)

    @property
    def parts(self) -> list[int]:
        return [shard.part for shard in self.shards]

    def record_name(self, stage: str) -> str:
        """The folder under stats/ of a stage's commit records: tokens stand side by side."""
        return f"tokens/{self.tokenizer_hash}" if stage == "tokens" else stage

    def input(self, source: str) -> Input:
        return next(item for item in self.settings.inputs if item.source == source)


@dataclass(frozen=True)
class PartStage:
    """Makes part N of a table from part N of others, and from joins."""

    after: tuple[str, ...]  # stages that it reads
    outputs: Callable[[Job, int], list[Path]]
    work: Callable[[Job, Shard], dict[str, Any]]  # writes the outputs, returns counters


@dataclass(frozen=True)
class TextStage:
    """Makes part N of a table from the text of part N, in one pass with others: see sweep.py."""

    after: tuple[str, ...]
    outputs: Callable[[Job, int], list[Path]]
    steps: Callable[[Job, int], Stage]
    reads: Callable[[Job], tuple[str, ...]] = lambda _: ()  # columns of documents beside text


@dataclass(frozen=True)
class Join:
    """Makes each of `partitions` from all parts of what it reads."""

    partitions: Callable[[Job], int]
    after: tuple[str, ...]
    outputs: Callable[[Job, int], list[Path]]
    work: Callable[[Job, int], dict[str, Any]]


def _signals(group: str) -> TextStage:
    return TextStage(
        ("ingest",) if group == "language" else ("ingest", "signals/language"),
        lambda job, part: measure.outputs(job.root, group, part),
        lambda job, part: measure.measure(job.root, group, groups(job.settings)[group], part),
        lambda job: groups(job.settings)[group].reads,
    )


def _edits(name: str) -> TextStage:
    return TextStage(
        ("ingest", "signals/language"),
        lambda job, part: edit.outputs(job.root, name, part),
        lambda job, part: edit.edit(job.root, name, editors(job.settings)[name], part),
        lambda job: ("id", *editors(job.settings)[name].reads),
    )


@functools.lru_cache(maxsize=1)
def encoder(settings: Tokenizer, engine: Engine) -> Encoder:
    """The tokenizer, read once a process."""
    return load(settings, engine)


def _partitions(job: Job) -> int:
    """Of the joins for copies: by the size of the input, never by workers."""
    return near_join.partitions(sum(shard.text_bytes for shard in job.shards))


FIRST = ("ingest", "signals/language", "nominees")  # of a part, before held-out sets are chosen
CONTAINED = (
    "contained_keys",
    "contained_filter",
    "contained_hits",
    "contained_proposals",
    "contained_candidates",
    "contained_shingles",
    "contained",
)

TEXT_STAGES: dict[str, TextStage] = {  # and those of FAMILIES that corpus.yaml asks for
    "tokens": TextStage(
        ("ingest",),
        lambda job, part: tokenize.outputs(job.root, job.tokenizer_hash, part),
        lambda job, part: tokenize.tokenize(job.root, encoder(job.tokenizer, job.engine), part),
    ),
    "signatures": TextStage(
        ("ingest",),
        lambda job, part: near.sign_outputs(job.root, part),
        lambda job, part: near.sign(job.root, job.settings.near, part),
        lambda job: ("url",),
    ),
    "contained_keys": TextStage(
        ("ingest",),
        lambda job, part: contained.key_outputs(job.root, part),
        lambda job, part: contained.find_keys(job.root, part),
    ),
    "matches": TextStage(
        ("ingest", "heldout"),
        lambda job, part: heldout_match.outputs(job.root, part),
        lambda job, part: heldout_match.match(
            job.root, job.settings.heldout, job.settings.near, part
        ),
    ),
    "pieces": TextStage(
        ("ingest",),
        lambda job, part: pieces.outputs(job.root, part),
        lambda job, part: pieces.pieces(job.root, job.settings.across, part),
        lambda _: pieces.READS,
    ),
    "stretches": TextStage(
        ("ingest",),
        lambda job, part: substrings.wind_outputs(job.root, part),
        lambda job, part: substrings.wind(job.root, job.settings.substrings, part),
    ),
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


# signals/<group> of each signal group of the job, edits/<name> of each of its editors.
FAMILIES: dict[str, Callable[[str], TextStage]] = {"signals": _signals, "edits": _edits}


def is_text_stage(name: str) -> bool:
    if name in PART_STAGES:
        return False
    return name in TEXT_STAGES or name.partition("/")[0] in FAMILIES


def text_stage(name: str) -> TextStage:
    """By its name: which signal groups and edits there are, corpus.yaml says."""
    if name in TEXT_STAGES:
        return TEXT_STAGES[name]
    family, _, member = name.partition("/")
    return FAMILIES[family](member)


def part_stage(name: str) -> PartStage | TextStage:
    """A stage that goes part by part, by its name."""
    return PART_STAGES[name] if name in PART_STAGES else text_stage(name)


def _across_edits(unit: str) -> PartStage:
    return PartStage(
        ("ingest", "pieces", "across"),
        lambda job, part: across_edits.outputs(job.root, unit, part),
        lambda job, shard: across_edits.edited(
            job.root, job.settings.across, unit, shard.part, _partitions(job)
        ),
    )


PART_STAGES: dict[str, PartStage] = {
    "ingest": PartStage(
        (),
        lambda job, part: ingest.outputs(job.root, part),
        lambda job, shard: ingest.ingest(
            job.root,
            shard,
            job.input(shard.source),
            job.settings.extractor,
            job.settings.hard,
            _sampler(job.id_bound),
            tolerant=job.settings.max_bad_files > 0,
            forgotten=forgotten.checker(job.root, job.settings.near),
        ),
    ),
    "nominees": PartStage(
        ("ingest", "signals/language"),
        lambda job, part: heldout.nominate_outputs(job.root, part),
        lambda job, shard: heldout.nominate(
            job.root, job.settings.heldout, tuple(job.settings.languages), shard.part
        ),
    ),
    f"signals/{across_edits.NAME}": PartStage(
        ("ingest", "pieces", "across"),
        lambda job, part: measure.outputs(job.root, across_edits.NAME, part),
        lambda job, shard: across_edits.measured(
            job.root, job.settings.across, shard.part, _partitions(job)
        ),
    ),
    **{f"edits/{unit}": _across_edits(unit) for unit in UNITS},
    "candidates": PartStage(
        ("ingest", "components"),
        lambda job, part: near.shingle_outputs(job.root, part),
        lambda job, shard: near.shingle(job.root, job.settings.near, shard.part, _partitions(job)),
    ),
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

PART_STAGES |= {
    "extensions": PartStage(
        ("ingest", "grouped_stretches"),
        lambda job, part: substrings.named_outputs(job.root, "extensions", part),
        lambda job, shard: substrings.extend(
            job.root, job.settings.substrings, shard.part, _partitions(job)
        ),
    ),
    "substrings": PartStage(
        ("ingest", "grouped_stretches", "grouped_extensions"),
        lambda job, part: substrings.place_outputs(job.root, part),
        lambda job, shard: substrings.place(
            job.root, job.settings.substrings, shard.part, _partitions(job)
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


def _grouped(which: str, *after: str) -> Join:
    return Join(
        _partitions,
        (which, *after),
        lambda job, partition: [substrings.grouped_output(job.root, which, partition)],
        lambda job, partition: substrings_join.group(
            job.root, which, job.parts, partition, _partitions(job)
        ),
    )


JOINS: dict[str, Join] = {
    "across": Join(
        _partitions,
        ("pieces",),
        lambda job, partition: [across.output(job.root, partition)],
        lambda job, partition: across.join(
            job.root, job.settings.across, job.parts, partition, _partitions(job)
        ),
    ),
    "grouped_stretches": _grouped("stretches"),
    "grouped_extensions": _grouped("extensions", "stretches"),
    "forest": Join(
        _partitions,
        ("signatures",),
        lambda job, partition: [near_join.forest_output(job.root, partition)],
        lambda job, partition: near_join.forest(
            job.root, job.settings.near, job.parts, partition, _partitions(job)
        ),
    ),
    "components": Join(  # or by rounds.py
        lambda _: 1,
        ("forest",),
        lambda job, _: [near.components_output(job.root)],
        lambda job, _: near_join.join(job.root, _partitions(job)),
    ),
    "pairs": Join(
        _partitions,
        ("candidates",),
        lambda job, partition: near_join.verify_outputs(job.root, partition),
        lambda job, partition: near_join.verify(
            job.root, job.settings.near, job.parts, partition, _partitions(job)
        ),
    ),
    "contained_filter": Join(
        lambda _: 1,
        ("contained_keys",),
        lambda job, _: [contained.filter_output(job.root)],
        lambda job, _: contained_join.make_filter(job.root, job.parts),
    ),
    "contained_proposals": Join(
        _partitions,
        ("contained_keys", "contained_hits"),
        lambda job, partition: [contained_join.proposals_output(job.root, partition)],
        lambda job, partition: contained_join.propose(
            job.root, job.parts, partition, _partitions(job)
        ),
    ),
    "contained_candidates": Join(
        lambda _: 1,
        ("contained_keys", "contained_proposals"),
        lambda job, _: contained.candidate_outputs(job.root),
        lambda job, _: contained_join.join(
            job.root, job.settings.near, job.parts, _partitions(job)
        ),
    ),
    "contained": Join(
        _partitions,
        ("contained_candidates", "contained_shingles"),
        lambda job, partition: [contained_join.verify_output(job.root, partition)],
        lambda job, partition: contained_join.verify(
            job.root, job.settings.near, job.parts, partition, _partitions(job)
        ),
    ),
    "heldout": Join(
        lambda _: 1,
        ("nominees",),
        lambda job, _: [*heldout.choose_outputs(job.root), *heldout_index.outputs(job.root)],
        lambda job, _: _choose(job),
    ),
    "evaluation_items": Join(
        lambda _: 1,
        (),
        lambda job, _: decontaminate.choose_outputs(job.root),
        lambda job, _: decontaminate.choose(
            job.root,
            job.settings.decontaminate,
            list(evaluation_items.read_items(job.settings.decontaminate)),
        ),
    ),
}


def _sampler(bound: int | None) -> Callable[[bytes], bool] | None:
    """With --limit: is the document of this id in the sample?"""
    if bound is None:
        return None
    return lambda document_id: int.from_bytes(document_id[:8], "big") < bound


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
