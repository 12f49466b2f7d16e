"""One run of `prepare`: shards, fingerprints, the pipeline if anything is missing, the accounts."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline import (
    accounts,
    added_tokenizers,
    attach,
    corpus,
    damage,
    disk,
    evaluation_items,
    finished,
    forgotten,
    frozen,
    given,
    merged,
    preconditions,
    progress,
    publish,
    store,
    takeout,
    timings,
)
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.files import read_sealed, remove_temporaries, write_sealed
from pipeline.groups import edges_of, editors, groups
from pipeline.inputs import input_files
from pipeline.job import plan_job
from pipeline.planning import cut_again, plan_shards, require_unchanged
from pipeline.prune import prune
from pipeline.runners import Chosen
from pipeline.schema import FORMAT_VERSION
from pipeline.settings import CorpusSettings
from pipeline.stages import Job
from pipeline.staleness import missing, missing_parts
from pipeline.tokenizer import load


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
    if any(not call.done for call in forgotten.listed(root)):
        print(
            f"{root}: documents are listed whose text has not gone yet: call `assay forget {root} "
            "--delete` after this",
            file=sys.stderr,
        )
    with corpus.locked(root):
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
        evaluation = evaluation_items.versions(settings.decontaminate)
        job = plan_job(root, settings, encoder, shards, limit, meanwhile=_beam)
        made = missing(job)
        if made or damaged or not _described(job):
            _say_what_changed(job)
            finished.set_aside(root)
            remove_temporaries(root)
            if "ingest" in made:
                stale = missing_parts(job, "ingest")
                cut_again(root, stale, files, settings.shard_bytes, runner.workers)
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
            prune(job)
            takeout.uncut(root)
            attached = attach.renew(root, job.parts)
            timings.write(root, sums.timings)
            tables = merged.renew(job, sums.hashes)
            write_sealed(root / "corpus.json", _manifest(job, sums, attached, tables, evaluation))
            publish.finish(root)
        finished.drop(root)
        return Prepared(root, corpus.manifest(root), made, time.perf_counter() - began)


def _run(job: Job, runner: Chosen, missing_parts: dict[str, int]) -> None:
    _beam().run(job, runner, progress.shown(job, missing_parts))


def _beam() -> ModuleType:
    """It takes a second to load: only where it runs."""
    from pipeline import launch

    return launch


def _described(job: Job) -> bool:
    """Does corpus.json stand, and speak of these settings and parts?"""
    found = read_sealed(job.root / "corpus.json")
    if found is None:
        return False
    stated = (found["format"], found["settings"], found["parts"], found["tokenizer"]["hash"])
    added = added_tokenizers.policies(job.root, job.added)
    return (
        stated == (FORMAT_VERSION, _settings(job), job.parts, job.tokenizer_hash)
        and found.get("tokenizers", {}) == added
    )


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
    job: Job,
    sums: accounts.Accounts,
    attached: list[str],
    merged_tables: list[str],
    evaluation_files: list[tuple[str, str, str]],
) -> dict[str, Any]:
    policy = read_sealed(job.root / "tokens" / job.tokenizer_hash / "policy.json")
    assert policy is not None, "plan_job wrote it"
    return {
        "format": FORMAT_VERSION,
        "name": job.root.name,
        "settings": _settings(job),
        "tokenizer": policy | {"engine": job.engine},
        "tokenizers": added_tokenizers.policies(job.root, job.added),
        "signals": ["normalize", *groups(job.settings), *attached],
        "edges": edges_of(_settings(job)),
        "edits": list(editors(job.settings)),
        "evaluation_files": evaluation_files,
        "meta": sorted({field for item in job.settings.inputs for field in item.keep}),
        "parts": job.parts,
        "merged": merged_tables,
        "bad_files": sums.bad_files,
        "broken_files": sums.broken_files,
        "stages": sums.stages,
        "finished": True,
    }


def require_documents(prepared: Prepared) -> None:
    """Refuse a corpus of nothing.

    Raises:
        ConfigError: every record was rejected; names the reasons.
    """
    totals = prepared.manifest["stages"]["ingest"]["totals"]
    if totals["kept"] == 0 and not totals.get("forgotten"):
        raise ConfigError(
            f"{prepared.root}: {counted(totals['records'], 'record')}, none of which became a "
            f"document; reasons: {totals['reasons']}; see "
            f"`assay sql {prepared.root} 'from rejects'`"
        )
