"""One run of `prepare`: shards, fingerprints, the pipeline if anything is missing, the accounts."""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import shutil
import sys
import time
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filters import normalize
from pipeline import (
    accounts,
    attach,
    corpus,
    damage,
    disk,
    finished,
    forks,
    frozen,
    given,
    merged,
    preconditions,
    progress,
    publish,
    store,
    timings,
)
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.files import part_number, read_sealed, remove_temporaries, write_sealed
from pipeline.fingerprint import fingerprint, versions
from pipeline.planning import input_files, plan_shards, require_unchanged
from pipeline.readers import Record
from pipeline.readers.formats import read
from pipeline.runners import Chosen
from pipeline.schema import FORMAT_VERSION, document_id
from pipeline.settings import CorpusSettings
from pipeline.shards import Shard, spill_folder
from pipeline.stages import JOINS, PART_STAGES, TEXT_STAGES, Job
from pipeline.staleness import make_job, missing
from pipeline.tokenizer import Encoder, choose_engine, find, load, save, stands

SAMPLE_BYTES = 1_000_000  # of text on which the fast tokenizer must agree with the reference
SAMPLE_SHARDS = 100
SAMPLE_RECORDS_A_SHARD = 50


@dataclass(frozen=True)
class Prepared:
    root: Path
    manifest: dict[str, Any]
    made: dict[str, int]  # parts that each stage made in this run; empty: all stood already
    seconds: float


def prepare(
    settings: CorpusSettings,
    runner: Chosen,
    limit: int | None = None,
    refresh: bool = False,
    verify: bool = False,
) -> Prepared:
    """Make or complete a corpus; what stands with the same fingerprint is not made again.

    Args:
        limit: only so many documents, by hash, into a folder of their own.
        refresh: drop what was made from input files that changed or vanished.
        verify: check the bytes of every file first; what is damaged is made again.

    Raises:
        ConfigError: the settings cannot be used; nothing was written.
        CorpusError: the corpus is in use, or its accounts do not add up.
    """
    began = time.perf_counter()
    preconditions.check(settings)
    encoder = load(settings.tokenizer)
    files = input_files(settings)
    assert settings.output is not None, "load_corpus sets the output"
    output = settings.output if limit is None else f"{settings.output}-limit-{limit}"
    root = store.folder(output)
    frozen.check(root, settings.heldout, given.kept_folders(settings.heldout))
    found = f"{counted(len(files), 'input file')} of {counted(len(settings.inputs), 'source')}"
    print(f"reading {found}", file=sys.stderr)
    with corpus.locked(root), disk.explained(root):
        damaged = damage.damaged(root) if verify else []
        for name in damaged:
            print(f"damaged, made again: {root / name}", file=sys.stderr)
        again = accounts.parts_with_bad_files(root)
        shards = plan_shards(
            root,
            files,
            settings.shard_bytes,
            refresh,
            settings.max_bad_files,
            again,
            runner.workers,
        )
        job = plan_job(root, settings, encoder, shards, limit)
        made = missing(job)
        if made or damaged or not _described(job):
            _say_what_changed(job)
            finished.set_aside(root)
            remove_temporaries(root)
            publish.begin(root)
            if made:
                if short := disk.shortage(root, sum(shard.text_bytes for shard in shards)):
                    print(short, file=sys.stderr)
                _run(job, runner, made)
                if "ingest" in made:
                    require_unchanged(root)
                publish.gather(root)
                print("all parts are made; adding up what became of them", file=sys.stderr)
            sums = accounts.add_up(job)
            _prune(job)
            attached = attach.renew(root, job.parts)
            timings.write(root, sums.timings)
            tables = merged.renew(job, sums.hashes)
            write_sealed(root / "corpus.json", _manifest(job, sums, attached, tables))
            publish.finish(root)
        finished.drop(root)
        return Prepared(root, corpus.manifest(root), made, time.perf_counter() - began)


def plan_job(
    root: Path,
    settings: CorpusSettings,
    encoder: Encoder,
    shards: list[Shard],
    limit: int | None = None,
) -> Job:
    """The job: the tokenizer saved with the engine that is right for this corpus, all stages
    fingerprinted."""
    bound = _id_bound(root, settings, shards, limit) if limit is not None else None
    folder = root / "tokens" / encoder.hash
    sources = {item.source: item.model_dump(exclude={"files"}) for item in settings.inputs}
    sampled = fingerprint(sources, versions(["fastokens", "tokenizers"]))
    chosen = read_sealed(folder / "engine.json")
    if (
        chosen is None
        or chosen["sampled"] != sampled
        or not stands(folder, chosen.get("files", {}))
    ):
        sample = list(_sample(settings, shards))
        # Apart: both engines and their ids would stay in this process, 80 MB, while workers work.
        choose = functools.partial(choose_engine, find(settings.tokenizer.file), sample)
        engine = forks.apart(choose)()
        files = save(encoder, folder)
        chosen = {"engine": engine, "documents": len(sample), "sampled": sampled, "files": files}
        write_sealed(folder / "engine.json", chosen)
    return make_job(root, settings, replace(encoder, engine=chosen["engine"]), bound)


def _run(job: Job, runner: Chosen, missing_parts: dict[str, int]) -> None:
    from pipeline.launch import run  # Beam takes a second to load: only where it runs

    run(job, runner, progress.shown(job, missing_parts))


def _sample(settings: CorpusSettings, shards: list[Shard]) -> Iterator[str]:
    """The first records of shards from all over, up to SAMPLE_BYTES of text."""
    chosen = shards[:: -(-len(shards) // SAMPLE_SHARDS)]
    share = SAMPLE_BYTES // max(1, len(chosen))
    sources = {item.source: item for item in settings.inputs}
    for shard in chosen:
        left = share
        records = read(shard.pieces[0], sources[shard.source], settings.extractor)
        with contextlib.suppress(Exception):  # a file that fails: ingest tells of it
            for record in itertools.islice(records, SAMPLE_RECORDS_A_SHARD):
                if left <= 0:
                    break
                if isinstance(record, Record):
                    text = normalize.normalize(record.text)[0][:left]
                    left -= len(text.encode())
                    yield text


def _id_bound(root: Path, settings: CorpusSettings, shards: list[Shard], limit: int) -> int:
    """The bound on ids below which `limit` records of all inputs lie; reads every record once."""
    remembered = read_sealed(root / "limit.json")
    versions_of_shards = [shard.version for shard in shards]
    if remembered is not None and remembered["shards"] == versions_of_shards:
        return int(remembered["bound"])
    sources = {item.source: item for item in settings.inputs}
    positions = (
        int.from_bytes(document_id(shard.source, piece.file, record.offset)[:8], "big")
        for shard in shards
        for piece in shard.pieces
        for record in read(piece, sources[shard.source], settings.extractor)
    )
    lowest = heapq.nsmallest(limit + 1, positions)
    bound = lowest[limit] if limit < len(lowest) else 1 << 64
    write_sealed(root / "limit.json", {"shards": versions_of_shards, "bound": str(bound)})
    return bound


def _described(job: Job) -> bool:
    """Does corpus.json stand, and speak of these settings and parts?"""
    found = read_sealed(job.root / "corpus.json")
    if found is None:
        return False
    stated = (found["format"], found["settings"], found["parts"], found["tokenizer"]["hash"])
    return stated == (FORMAT_VERSION, _settings(job), job.parts, job.tokenizer_hash)


def _say_what_changed(job: Job) -> None:
    """Name the stages of a finished corpus whose own settings, code or versions are other now."""
    known = read_sealed(finished.standing(job.root) / "corpus.json")
    if known is None:
        return
    before = known["stages"]
    changed = [s for s, now in job.prints if before.get(s, {}).get("fingerprint", now) != now]
    if changed:
        print(
            f"made again, with what follows from them, because their settings, code or versions "
            f"changed: {', '.join(changed)}",
            file=sys.stderr,
        )


def _settings(job: Job) -> dict[str, Any]:
    dumped: dict[str, Any] = job.settings.model_dump(mode="json")
    return dumped


def _manifest(
    job: Job, sums: accounts.Accounts, attached: list[str], merged_tables: list[str]
) -> dict[str, Any]:
    policy = read_sealed(job.root / "tokens" / job.tokenizer_hash / "policy.json")
    assert policy is not None, "plan_job wrote it"
    return {
        "format": FORMAT_VERSION,
        "name": job.root.name,
        "settings": _settings(job),
        "tokenizer": policy | {"engine": job.engine},
        "signals": ["normalize", *job.settings.signals, *attached],
        "meta": sorted({field for item in job.settings.inputs for field in item.keep}),
        "parts": job.parts,
        "merged": merged_tables,
        "bad_files": sums.bad_files,
        "broken_files": sums.broken_files,
        "stages": sums.stages,
        "finished": True,
    }


def _prune(job: Job) -> None:
    """Delete what belongs to parts and spilled files that no input has any more."""
    parts = set(job.parts)
    wanted_parts: dict[Path, Container[int]] = {}
    for pattern in ("signals/*", "tokens/*", "tokens/*/counts"):  # former ones, and attached groups
        wanted_parts |= dict.fromkeys(job.root.glob(pattern), parts)
    for stage in job.part_stages:
        outputs = (PART_STAGES | TEXT_STAGES)[stage].outputs(job, 0)
        folders = [job.root / "stats" / job.record_name(stage), *(p.parent for p in outputs)]
        wanted_parts |= dict.fromkeys(folders, parts)
    for stage, join in JOINS.items():
        folders = [job.root / "stats" / stage, *(p.parent for p in join.outputs(job, 0))]
        wanted_parts |= dict.fromkeys(folders, range(join.partitions(job)))
    for folder, numbers in wanted_parts.items():
        for path in folder.glob("part-*"):
            if part_number(path) not in numbers:
                path.unlink()
    files = {(shard.source, piece.file) for shard in job.shards for piece in shard.pieces}
    wanted = {spill_folder(key).name for key in files}
    for folder in (job.root / "cut").glob("*"):
        if folder.name not in wanted:
            shutil.rmtree(folder)


def require_documents(prepared: Prepared) -> None:
    """Refuse a corpus of nothing.

    Raises:
        ConfigError: every record was rejected; names the reasons.
    """
    totals = prepared.manifest["stages"]["ingest"]["totals"]
    if totals["kept"] == 0:
        raise ConfigError(
            f"{prepared.root}: {counted(totals['records'], 'record')}, none of which became a "
            f"document; reasons: {totals['reasons']}; see "
            f"`assay sql {prepared.root} 'from rejects'`"
        )
