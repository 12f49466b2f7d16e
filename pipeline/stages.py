"""The stages of `prepare`: what each reads, what it makes, and how, joined from stage_tables/.

Stages of a part run one after another in one worker; joins see all parts. `staleness.py` tells what
has to be made, `run.py` makes it, `build.py` wires it into a Beam pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.added_tokenizers import Added
from pipeline.groups import editors, groups
from pipeline.settings import CorpusSettings, Input, Tokenizer
from pipeline.shards import Shard, load_shards
from pipeline.stage_kinds import Join, PartStage, TextStage
from pipeline.stage_tables import (
    across,
    contained,
    decontaminate,
    documents,
    heldout,
    near,
    substrings,
)
from pipeline.tokenizer_engines import Engine
from pipeline.transforms import edit, measure
from pipeline.transforms.substrings import NAME as SUBSTRINGS

FIRST = ("ingest", "signals/language", "nominees")  # of a part, before held-out sets are chosen


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
    added: tuple[Added, ...] = ()  # tokenizers beside the first
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
        tokens = ("tokens", *(added.stage for added in self.added))
        return (*by_text, *tokens, "signatures", *keyed, "matches", *met, *repeated)

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
        edited = ("edits/substrings",) if SUBSTRINGS in self.settings.edits else ()
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
        first = (*FIRST[:-1], *self.linked, FIRST[-1])
        swept = (*first, "heldout", *self.chosen, *self.sweep)
        return (*swept, *across, *near_duplicates, *self.substrings)

    @property
    def contained(self) -> tuple[str, ...]:
        """What finds documents inside others, in order: the first in the sweep."""
        return contained.NAMES if self.settings.near.containment is not None else ()

    @property
    def linked(self) -> tuple[str, ...]:
        """The join of pages that name each other, where groups are told by that."""
        told = self.settings.translation_group
        return ("translations",) if told and told.hreflang else ()

    def after(self, name: str) -> tuple[str, ...]:
        """The stages that a stage which goes part by part reads."""
        return part_stage(name).after + (self.linked if name == "nominees" else ())

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


# By name; signals/<group> and edits/<name> are of FAMILIES, but for those that stand here.
TEXT_STAGES: dict[str, TextStage] = {
    **documents.TEXTS,
    **near.TEXTS,
    **contained.TEXTS,
    **heldout.TEXTS,
    **across.TEXTS,
    **substrings.TEXTS,
    **decontaminate.TEXTS,
}
PART_STAGES: dict[str, PartStage] = {
    **documents.PARTS,
    **heldout.PARTS,
    **across.PARTS,
    **near.PARTS,
    **contained.PARTS,
    **substrings.PARTS,
}
JOINS: dict[str, Join] = {
    **across.JOINS,
    **substrings.JOINS,
    **near.JOINS,
    **contained.JOINS,
    **heldout.JOINS,
    **decontaminate.JOINS,
}

# signals/<group> of each signal group of the job, edits/<name> of each of its editors,
# tokens/<hash> of each tokenizer beside its first.
FAMILIES: dict[str, Callable[[str], TextStage]] = {
    "signals": _signals,
    "edits": _edits,
    "tokens": documents.added_tokens,
}


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
