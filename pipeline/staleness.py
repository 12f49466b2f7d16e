"""What has to be made again: fingerprints of every part over all that it depends on.

A stage depends on its code, settings, versions and model files (`make_job`), and on the
fingerprints of what it reads, part by part (`Fingerprints`). So a new source, signal, threshold or
tokenizer remakes what depends on it and nothing else.
"""

from __future__ import annotations

import functools
import importlib.util
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from filters.editors import Editor
from filters.signals import Group
from kernels.han import SIMPLIFIED
from pipeline import added_tokenizers, commits, evaluation_items, frozen, given, store
from pipeline.dedup_settings import Near
from pipeline.encoder import Encoder
from pipeline.files import file_hash, hash_once, read_json
from pipeline.fingerprint import code, fingerprint, versions
from pipeline.groups import editors, groups
from pipeline.readers.formats import READERS, format_of, packages_of
from pipeline.sentencepiece_engine import SENTENCEPIECE
from pipeline.settings import CorpusSettings
from pipeline.shards import Shard
from pipeline.stages import JOINS, Job, is_text_stage
from pipeline.tokenizer_engines import Engine
from pipeline.transforms import heldout, heldout_index

FILTERS = Path(__file__).resolve().parent.parent / "filters"
TRANSFORMS = "pipeline.transforms"


def make_job(
    root: Path, settings: CorpusSettings, encoder: Encoder, id_bound: int | None = None
) -> Job:
    """Say for every stage what it depends on by itself, other stages and parts apart."""
    written = ["pyarrow", "zlib-ng", "zstandard"]  # a reader's own stand with its format
    written += ["trafilatura"] if settings.extractor == "trafilatura" else []
    near, folding = settings.near.model_dump(), _folding()
    held, parallel = settings.heldout, settings.translation_group
    added = added_tokenizers.listed(root, encoder.hash)
    own: dict[str, tuple[str, Any]] = {
        "ingest": ("ingest", [settings.hard, settings.extractor, id_bound, versions(written)]),
        "tokens": ("tokenize", _encoding(encoder.hash, encoder.engine)),
        "signatures": ("near", _signing(settings.near)),
        "forest": ("near_join", near["threshold"]),
        "components": ("near_join", []),
        "candidates": ("near", []),
        "pairs": ("near_join", near["threshold"]),
        "nominees": (
            "heldout",
            [list(settings.languages), held.share, held.min_documents, held.max_documents]
            + ([parallel.model_dump()] if parallel else []),
        ),
        "heldout": (
            "heldout",
            [
                given.independent_version(held),
                [file_hash(frozen.paths(root)[0]) for root in given.kept_folders(held)],
                [heldout_index.least(held, settings.near), near["ngram"], folding],
                [code(f"{TRANSFORMS}.heldout_index"), code("pipeline.given")],
            ],
        ),
        "matches": ("heldout_match", [held.containment, near["threshold"], near["ngram"], folding]),
    }
    if parallel and parallel.hreflang:
        own["translations"] = ("hreflang", [])
    if units := settings.across.units:
        least = {name: unit.documents for name, unit in units.items()}
        lengths = {name: (unit.words, unit.characters) for name, unit in units.items()}
        own["pieces"] = ("pieces", [lengths, settings.across.kinds, folding, versions(["numba"])])
        own["across"] = ("across", least)
    if settings.decontaminate.sets:
        looked_for = settings.decontaminate.model_dump(exclude={"share"})
        files = evaluation_items.versions(settings.decontaminate)
        own["evaluation_items"] = (
            "decontaminate",
            [looked_for, files, folding, code("pipeline.evaluation_items")],
        )
    if settings.substrings.min_bytes is not None:
        size = settings.substrings.size
        own |= dict.fromkeys(("stretches", "extensions", "substrings"), ("substrings", size))
        own |= dict.fromkeys(("grouped_stretches", "grouped_extensions"), ("substrings_join", []))
    if near["containment"] is not None:
        own |= {
            "contained_keys": ("contained", [near["ngram"], folding]),
            "contained_filter": ("contained_join", []),
            "contained_hits": ("contained", []),
            "contained_proposals": ("contained_join", []),
            "contained_candidates": ("contained_join", near["containment"]),
            "contained_shingles": ("contained", []),
            "contained": ("contained_join", near["containment"]),
        }
    for group, measured in groups(settings).items():
        own[f"signals/{group}"] = ("measure", _finder(measured))
    for name, edited in editors(settings).items():
        own[f"edits/{name}"] = ("edit", _finder(edited))
    prints = tuple((stage, _own(stage, *parts)) for stage, parts in own.items())
    # As of the first, so that whichever of them becomes it keeps its tokens.
    prints += tuple(
        (a.stage, _own("tokens", "tokenize", _encoding(a.hash, a.engine))) for a in added
    )
    prints += tuple(
        (f"ingest/{key}", fingerprint(versions(packages_of(key))))
        for key, reader in READERS.items()
        if not reader.extra or importlib.util.find_spec(reader.extra[0])
    )
    copy = root / "tokens" / encoder.hash / "tokenizer.json"
    tokenizer = settings.tokenizer.model_copy(update={"file": str(copy)})
    digest = fingerprint(settings.model_dump(mode="json"))
    job = Job(
        root,
        settings,
        digest,
        tokenizer,
        encoder.hash,
        encoder.engine,
        prints,
        id_bound,
        added=added,
    )
    mirror = store.of(root)
    return replace(job, store=mirror.url, lease=mirror.number) if mirror else job


def _own(stage: str, module: str, parts: Any) -> str:
    batches = code("pipeline.tables") if is_text_stage(stage) else ""  # what the sweep gives to it
    return fingerprint(stage, code(f"{TRANSFORMS}.{module}"), batches, parts)


def _encoding(tokenizer_hash: str, engine: Engine) -> list[Any]:
    own = [SENTENCEPIECE] if engine == SENTENCEPIECE else ["tokenizers", "fastokens"]
    return [tokenizer_hash, code("pipeline.encoder"), versions(own)]


def signature_print(near: Near) -> str:
    """What band keys of this version depend on: the fingerprint of `signatures` by itself."""
    return _own("signatures", "near", _signing(near))


def _signing(near: Near) -> list[Any]:
    return [near.model_dump(exclude={"threshold", "containment"}), _folding()]


def _folding() -> list[str]:
    return [file_hash(SIMPLIFIED), unicodedata.unidata_version]


def _finder(finder: Group | Editor) -> list[Any]:
    """What the function of a signal group or of an editor depends on."""
    return [
        [code(module) for module in finder.modules],
        [file_hash(FILTERS / name) for name in finder.files],  # absolute ones stay
        finder.settings,
        [unicodedata.unidata_version, versions(["numba"])],
    ]


class Fingerprints:
    """Fingerprints of parts and joins of a job; each is worked out once."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.own = dict(job.prints)
        self.shards = job.shards
        self.known: dict[tuple[str, int], str] = {}

    def part(self, name: str, shard: Shard) -> str:
        if name == "matches":  # the sets are frozen: what counts is what they hold now
            path = heldout.choose_outputs(self.job.root)[0]
            sets = _hash_of_sets(path, path.stat().st_mtime_ns)
            return fingerprint(self.own[name], self.part("ingest", shard), sets)
        key = (name, shard.part)
        if key not in self.known:
            after = self.job.after(name)
            read = [self.join(a) if a in JOINS else self.part(a, shard) for a in after]
            if name == "ingest":
                origin = self.job.input(shard.source)
                source = origin.model_dump(exclude={"files", "decode"})
                formats = sorted({format_of(piece.file) for piece in shard.pieces})
                read = [fingerprint(source), shard.version]
                read += [hash_once(Path(origin.decode))] if origin.decode else []
                read += [self.own[f"ingest/{key}"] for key in formats]
            self.known[key] = fingerprint(self.own[name], read)
        return self.known[key]

    def join(self, name: str) -> str:
        key = (name, -1)
        if key not in self.known:
            read = [
                [self.join(a)] if a in JOINS else [self.part(a, shard) for shard in self.shards]
                for a in JOINS[name].after
            ]
            partitions = JOINS[name].partitions(self.job)
            self.known[key] = fingerprint(self.own[name], partitions, read)
        return self.known[key]


def fingerprints_of(job: Job) -> Fingerprints:
    """One `Fingerprints` a process, as long as job and inputs.json stay the same."""
    return _fingerprints_of(job, (job.root / "inputs.json").stat().st_mtime_ns)


@functools.lru_cache(maxsize=1)
def _fingerprints_of(job: Job, version: int) -> Fingerprints:
    del version  # part of the cache's key
    return Fingerprints(job)


@functools.lru_cache(maxsize=1)
def _hash_of_sets(path: Path, version: int) -> str:
    del version  # part of the cache's key
    known = read_json(path)
    return str(
        known.get("matched", known["hash"])
    )  # as they were when texts of them were forgotten


def missing(job: Job) -> dict[str, int]:
    """Parts that each stage still has to make, in the order of the stages; empty: all stand."""
    prints = Fingerprints(job)
    found: dict[str, int] = {}
    for name in job.stages:
        if name == "matches" and found["heldout"]:  # of which sets is not known yet
            found[name] = len(prints.shards)
        else:
            found[name] = sum(record is None for record in records(job, prints, name))
    return {name: count for name, count in found.items() if count}


def missing_parts(job: Job, name: str) -> list[Shard]:
    """The shards of which a stage that goes part by part still has to make its part."""
    prints = Fingerprints(job)
    found = zip(prints.shards, records(job, prints, name), strict=True)
    return [shard for shard, record in found if record is None]


def records(job: Job, prints: Fingerprints, name: str) -> Iterator[dict[str, Any] | None]:
    """Of each part or partition of a stage the commit record; None: it does not stand."""
    wanted: Iterable[tuple[int, str]]
    if name in JOINS:
        wanted = ((n, prints.join(name)) for n in range(JOINS[name].partitions(job)))
    else:
        wanted = ((shard.part, prints.part(name, shard)) for shard in prints.shards)
    folder = job.record_name(name)
    return (commits.record(job.root, folder, *one) for one in wanted)
