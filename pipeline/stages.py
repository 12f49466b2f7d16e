"""The stages of `prepare` as plain calls, what each depends on, and whether it stands already.

Stages of a part run one after another in one worker; joins see all parts. Nothing here loads Beam:
`build.py` wires these calls into a pipeline, `estimate.py` calls them in a loop.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filters.signals import GROUPS
from pipeline import corpus
from pipeline.files import file_hash, read_json
from pipeline.fingerprint import code, fingerprint, versions
from pipeline.settings import CorpusSettings, Input, Tokenizer
from pipeline.shards import Shard, load_shards
from pipeline.tokenizer import Encoder, load
from pipeline.tokenizer_engines import Engine
from pipeline.transforms import heldout, ingest, measure, near, tokenize

FILTERS = Path(__file__).resolve().parent.parent / "filters"
SIMPLIFIED = FILTERS.parent / "kernels" / "simplified.tsv"


@dataclass(frozen=True)
class Job:
    """All that a worker needs to know; it travels with every step, so shards stay in inputs.json
    and the tokenizer in the corpus."""

    root: Path
    settings: CorpusSettings
    tokenizer: Tokenizer  # the corpus's own copy, and the policy
    tokenizer_hash: str
    engine: Engine
    fingerprints: dict[str, str]  # of each stage, over what it depends on but the shard
    id_bound: int | None = None  # with --limit: ids below are in the sample

    @property
    def part_stages(self) -> tuple[str, ...]:
        groups = tuple(f"signals/{group}" for group in self.settings.signals)
        return ("ingest", *groups, "tokens", "signatures", "nominees")

    @property
    def shards(self) -> list[Shard]:
        return load_shards(self.root)

    @property
    def parts(self) -> list[int]:
        return [shard.part for shard in self.shards]


def make_job(
    root: Path,
    settings: CorpusSettings,
    encoder: Encoder,
    shards: list[Shard],
    id_bound: int | None = None,
) -> Job:
    """Fingerprint every stage: settings it uses, its code, versions, models, what it reads."""
    s = settings
    inputs = {i.source: i.model_dump(exclude={"files"}) for i in s.inputs}
    html = ("resiliparse", "fastwarc", "charset-normalizer", "orjson", "pyarrow")
    prints: dict[str, str] = {}

    def add(stage: str, module: str, *parts: Any, packages: tuple[str, ...] = ()) -> None:
        prints[stage] = fingerprint(stage, code(module), versions(packages), parts)

    where = "pipeline.transforms"
    extractor = [s.extractor, versions(["trafilatura"]) if s.extractor == "trafilatura" else {}]
    add("ingest", f"{where}.ingest", inputs, extractor, s.hard, id_bound, packages=html)
    for group in s.signals:
        table = GROUPS[group]
        modules = [code(module) for module in table.modules]
        files = [file_hash(FILTERS / name) for name in table.files]
        add(f"signals/{group}", f"{where}.measure", prints["ingest"], modules, files)
    tokenizing = code("pipeline.tokenizer")
    add("tokens", f"{where}.tokenize", prints["ingest"], encoder.hash, tokenizing)
    folding = [file_hash(SIMPLIFIED), unicodedata.unidata_version]
    add("signatures", f"{where}.near", prints["ingest"], s.near.model_dump(), folding)
    add("nominees", f"{where}.heldout", prints["signals/language"], s.heldout.model_dump())
    everything = [fingerprint(shard) for shard in shards]
    for stage in ("forest", "components", "candidates", "pairs"):
        add(stage, f"{where}.near", prints["signatures"], everything)
    kept = [file_hash(Path(k)) for k in s.heldout.keep]
    add("heldout", f"{where}.heldout", prints["nominees"], everything, kept)
    add("matches", f"{where}.heldout", prints["nominees"], folding, s.near.ngram)
    folder = root / "tokens" / encoder.hash
    tokenizer = s.tokenizer.model_copy(update={"file": str(folder / "tokenizer.json")})
    return Job(root, settings, tokenizer, encoder.hash, encoder.engine, prints, id_bound)


@functools.lru_cache(maxsize=1)
def _encoder(settings: Tokenizer, engine: Engine) -> Encoder:
    """The tokenizer, read once a process."""
    return load(settings, engine)


# --- stages of a part -----------------------------------------------------------------------------


def run_part(job: Job, stage: str, shard: Shard) -> Shard:
    """Make one stage of one part unless it stands; returns the shard, for the next stage."""
    root, part, settings = job.root, shard.part, job.settings
    outputs: list[Path]
    work: Callable[[], dict[str, Any]]
    if stage == "ingest":
        outputs = ingest.outputs(root, part)
        work = functools.partial(
            ingest.ingest,
            root,
            shard,
            _input(settings, shard.source),
            settings.extractor,
            settings.hard,
            functools.partial(_below, job.id_bound) if job.id_bound is not None else None,
        )
    elif stage == "tokens":
        outputs = tokenize.outputs(root, job.tokenizer_hash, part)
        work = functools.partial(_tokenize, job, part)
    elif stage == "signatures":
        outputs = near.sign_outputs(root, part)
        work = functools.partial(near.sign, root, settings.near, part)
    elif stage == "nominees":
        outputs = heldout.nominate_outputs(root, part)
        work = functools.partial(heldout.nominate, root, settings.heldout, part)
    elif stage == "candidates":
        outputs = near.shingle_outputs(root, part)
        work = functools.partial(near.shingle, root, settings.near, part)
    elif stage == "matches":
        outputs = heldout.match_outputs(root, part)
        work = functools.partial(
            heldout.match, root, settings.heldout.containment, settings.near.ngram, part
        )
    else:
        group = stage.removeprefix("signals/")
        outputs = measure.outputs(root, group, part)
        work = functools.partial(measure.measure, root, group, GROUPS[group], part)
    corpus.once(root, stage, part, part_fingerprint(job, stage, shard), outputs, work)
    return shard


def part_fingerprint(job: Job, stage: str, shard: Shard) -> str:
    """What a part of a stage depends on: stage and shard; for matches also the held-out text."""
    held = read_json(job.root / "heldout.json")["hash"] if stage == "matches" else ""
    return fingerprint(job.fingerprints[stage], shard, held)


def _input(settings: CorpusSettings, source: str) -> Input:
    return next(item for item in settings.inputs if item.source == source)


def _tokenize(job: Job, part: int) -> dict[str, Any]:
    return tokenize.tokenize(job.root, _encoder(job.tokenizer, job.engine), part)


def _below(bound: int, document_id: bytes) -> bool:
    return int.from_bytes(document_id[:8], "big") < bound


# --- joins ----------------------------------------------------------------------------------------


def run_join(job: Job, stage: str, partition: int) -> int:
    """Make one partition of a join unless it stands; returns the partition."""
    root = job.root
    outputs: list[Path]
    work: Callable[[], dict[str, Any]]
    if stage == "forest":
        outputs = [near.forest_output(root, partition)]
        work = functools.partial(near.forest, root, job.parts, partition)
    elif stage == "components":
        outputs = [near.components_output(root)]
        work = functools.partial(near.join, root)
    elif stage == "pairs":
        outputs = near.verify_outputs(root, partition)
        work = functools.partial(near.verify, root, job.settings.near, job.parts, partition)
    else:
        outputs = heldout.choose_outputs(root)
        work = functools.partial(_choose, job)
    corpus.once(root, stage, partition, job.fingerprints[stage], outputs, work)
    return partition


JOINS = {"forest": near.NUM_PARTITIONS, "components": 1, "pairs": near.NUM_PARTITIONS, "heldout": 1}


def _choose(job: Job) -> dict[str, Any]:
    counted = {
        shard.part: read_json(corpus.record_path(job.root, "nominees", shard.part))["counters"]
        for shard in job.shards
    }
    return heldout.choose(
        job.root,
        job.settings.heldout,
        Input(source="independent", files="", kind="web"),
        {part: counters["languages"] for part, counters in counted.items()},
        {shard.part: shard.source for shard in job.shards},
    )


# --- what stands ----------------------------------------------------------------------------------


def missing(job: Job) -> dict[str, int]:
    """Parts that each stage still has to make; empty when all stand."""
    found: dict[str, int] = {}
    for stage in (*job.part_stages, "candidates"):
        found[stage] = sum(
            not corpus.record(job.root, stage, s.part, part_fingerprint(job, stage, s))
            for s in job.shards
        )
    for stage, partitions in JOINS.items():
        found[stage] = sum(
            not corpus.record(job.root, stage, p, job.fingerprints[stage])
            for p in range(partitions)
        )
    heldout_stands = found["heldout"] == 0
    found["matches"] = sum(
        not heldout_stands
        or not corpus.record(job.root, "matches", s.part, part_fingerprint(job, "matches", s))
        for s in job.shards
    )
    return {stage: count for stage, count in found.items() if count}
