"""`prepare` in a process that kills itself with SIGKILL at a chosen moment.

Moments are the renames by which files appear, just before and just after, and the middle of a file
(half of the bytes written). The stages run one after another without Beam, so a process costs a
fork, and a hundred kills a minute; kills of the real command stand in test_prepare.py.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from pathlib import Path

from pipeline import beside, corpus, files, launch, prepare, runners
from pipeline.run import run_join, run_part, run_sweep
from pipeline.settings import Tokenizer, load_corpus
from pipeline.stages import JOINS, PART_STAGES, Job

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["kills"])


def prepared_or_killed(settings: Path, moment: int, told: Path) -> bool:
    """Whether a run got to its end; otherwise `told` has one more line: the file it died at."""
    process = FORKS.Process(target=_run, args=(settings, moment, told))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return process.exitcode == 0


def _run(settings: Path, moment: int, told: Path) -> None:
    die_at_rename(moment, told)
    prepare._run = run_stages  # type: ignore[assignment]
    prepare.prepare(load_corpus(settings), runners.Chosen("inline", 1))


def die_at_rename(moment: int, told: Path) -> None:
    """Let this process kill itself at the moment of that number; `told` has a line of it."""
    real, left = os.replace, moment

    def replace(temporary: str, path: str) -> None:
        nonlocal left
        for half in ("before", "middle", "after"):
            left -= 1
            if half == "after":
                real(temporary, path)
            if left == 0:
                with open(told, "a") as file:
                    file.write(f"{half} {path}\n")
                if half == "middle":
                    os.truncate(temporary, os.path.getsize(temporary) // 2)
                os.kill(os.getpid(), signal.SIGKILL)

    files.os.replace = replace  # type: ignore[assignment]


def run_stages(job: Job, *_: object) -> None:
    """All stages in the order of the job; text stages that follow each other in one sweep."""
    for kind, group in itertools.groupby(job.stages, key=_kind):
        names = tuple(group)
        if kind == "text":
            for shard in job.shards:
                run_sweep(job, names, shard)
        for name in names:
            if kind == "part":
                for shard in job.shards:
                    run_part(job, name, shard)
            if kind == "join":
                for partition in range(JOINS[name].partitions(job)):
                    run_join(job, name, partition)


def _kind(stage: str) -> str:
    return "join" if stage in JOINS else "part" if stage in PART_STAGES else "text"


def tokenized_or_killed(root: Path, tokenizer: Path, moment: int, told: Path) -> bool:
    """As `prepared_or_killed`, of `assay tokenize`."""
    process = FORKS.Process(target=_tokenize, args=(root, tokenizer, moment, told))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return process.exitcode == 0


def _tokenize(root: Path, tokenizer: Path, moment: int, told: Path) -> None:
    die_at_rename(moment, told)
    launch.run_sweep = _sweep  # type: ignore[assignment]
    with corpus.locked(root):
        beside.tokenize(root, Tokenizer(file=str(tokenizer)), None, 1)


def _sweep(job: Job, stages: tuple[str, ...], *_: object) -> None:
    for shard in job.shards:
        run_sweep(job, stages, shard)
