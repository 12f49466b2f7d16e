"""`assay train` and `assay evaluate`.

Each imports torch when it is needed: --help, a mistake in a settings file, a finished run and
scores that stand are answered without its seconds.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import yaml

from mixtures.commands import table
from pipeline.amounts import parse_bytes
from pipeline.config import ConfigError
from trainer import follow
from trainer.cloze import RULES, TaskScore, task_scores
from trainer.data import planned, require_usable
from trainer.metrics import Progress
from trainer.record import finished_before
from trainer.rescore import answers_to, scores_of
from trainer.scores import scores_by
from trainer.settings import RunSettings, load_run
from trainer.tasks import load_tasks
from trainer.trained import trained

TRAIN_HELP = """\
example:
  assay train run.yaml --set tokens=500k --set model=1M

  run.yaml:
    mixture: mixture.yaml
    model: 0.4M
    tokens: 2M
    batch_tokens: 16k

`mixture` may be what `assay mix --publish` wrote, a folder or URL: s3://bucket/plan. Then
`cache: {folder: /local/shards, max_bytes: 200GB}` holds what is read of it.

A finished run is not run again; an unfinished one goes on. Several processes:
  torchrun --standalone --nproc-per-node 8 -m trainer.cli train run.yaml
What a layout needs, on one CPU (docs/parallel.md):
  assay train run.yaml --dry-run --ranks 128 --memory 80GB"""

EVALUATE_HELP = """\
examples:
  assay evaluate runs/small --by language
  assay evaluate runs/small --task tasks/capitals.jsonl --task tasks/ceval.yaml
  assay evaluate runs/small --follow      in a process of its own, beside the run

a task is a JSONL file, a question a line (docs/evaluation.md):
  {"context": "The capital of France is", "choices": [" Paris", " Rome"], "answer": 0}"""


def train(argv: list[str]) -> int:
    """Train a model on a mixture."""
    parser = argparse.ArgumentParser(
        "assay train",
        description=train.__doc__,
        epilog=TRAIN_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("settings", metavar="run.yaml")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another value for a key of run.yaml, dotted: schedule.decay=0.1",
    )
    parser.add_argument("--fresh", action="store_true", help="forget what `output` holds")
    parser.add_argument(
        "--dry-run", action="store_true", help="what the layout needs; train nothing"
    )
    parser.add_argument("--ranks", type=int, default=1, help="of the dry run (default: 1)")
    parser.add_argument("--memory", default="80GB", help="of a device, in the dry run")
    parser.add_argument(
        "--sequence-length", type=int, help="of the dry run; default: the mixture's"
    )
    parser.add_argument("--vocabulary", type=int, help="of the dry run; default: the mixture's")
    options = parser.parse_args(argv)
    run = load_run(options.settings, dict(_change(item) for item in options.set))
    if options.dry_run:
        return _dry_run(run, options)
    result = None if options.fresh else finished_before(run)
    progress = Progress()
    if result is None:
        require_usable(run)
        from trainer import loop

        result = loop.train(run, progress=progress, fresh=options.fresh)
    if int(os.environ.get("RANK", 0)) == 0:
        progress.line(result.told())
    return 0


def _dry_run(run: RunSettings, options: argparse.Namespace) -> int:
    """Print memory and traffic of a layout; 1 when it does not fit."""
    memory = parse_bytes(options.memory)
    if options.ranks < 1:
        raise ConfigError(f"--ranks {options.ranks}: expected 1 or more, as in --ranks 128")
    length, vocabulary = options.sequence_length, options.vocabulary
    if length is None or vocabulary is None:
        plan = planned(run, pack=False)
        length, vocabulary = length or plan.sequence_length, vocabulary or plan.vocab_size
    from trainer.parallel.dry_run import HEADROOM, dry_run

    uses = dry_run(run, options.ranks, length, vocabulary)
    print(f"{options.ranks:,} ranks; windows of {length:,} tokens, vocabulary {vocabulary:,}\n")
    print("\n".join(table([row for use in uses for row in use.rows()])))
    most = max(use.memory for use in uses)
    fits = most <= memory * (1 - HEADROOM)
    verdict = "fits" if fits else "does not fit: see docs/parallel.md for what makes it smaller"
    print(f"\n{most / 1e9:.1f} GB of {memory / 1e9:.1f} GB, {HEADROOM:.0%} kept free: {verdict}")
    return 0 if fits else 1


def _change(item: str) -> tuple[str, Any]:
    key, equals, value = item.partition("=")
    if not equals:
        raise ConfigError(f"--set {item}: expected KEY=VALUE, for instance --set tokens=500k")
    return key, yaml.safe_load(value)


def evaluate(argv: list[str]) -> int:
    """Bits per byte of the held-out sets, and cloze tasks, for a checkpoint; on one process."""
    parser = argparse.ArgumentParser(
        "assay evaluate",
        description=evaluate.__doc__,
        epilog=EVALUATE_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("--checkpoint", metavar="NAME", help="step-00000120; default: the newest")
    parser.add_argument("--by", choices=["set", "language", "source"], default="set")
    parser.add_argument(
        "--task", action="append", default=[], metavar="FILE",
        help="a cloze task, .jsonl or .yaml; default: those of its run.yaml",
    )  # fmt: skip
    parser.add_argument(
        "--follow", action="store_true", help="score each checkpoint as it comes, to the run's end"
    )
    options = parser.parse_args(argv)
    folder, progress = Path(options.run), Progress()
    if options.follow:
        follow.follow(folder, options.task, progress)
        return 0
    job = trained(folder, options.checkpoint)
    tasks = load_tasks(options.task or job.run.evaluate.tasks)
    scored = scores_of(job, progress)
    rows: list[tuple[str, ...]] = [(options.by, "bits per byte", "documents", "bytes")]
    rows += [
        (name, f"{s.bits_per_byte:.4f}", f"{s.num_documents:,}", f"{s.num_bytes:,}")
        for name, s in scores_by(scored.table, options.by).items()
    ]
    print("\n".join(table(rows)))
    once = "" if options.by == "set" else "; a text that stands in several sets counts once"
    print(f"\na row: all bits of its documents / all their bytes, so long ones weigh more{once}")
    how = scored.news or "as scored before, on the same held-out sets"
    print(f"{job.checkpoint}: {how}; by document: {folder / 'evaluations.parquet'}")
    if tasks:
        print()
        print("\n".join(table(_task_rows(task_scores(answers_to(job, tasks, progress))))))
        print(
            f"\nright, by the rule of each column: docs/evaluation.md; by choice: "
            f"{folder / 'answers.parquet'}"
        )
    return 0


def _task_rows(scores: dict[str, TaskScore]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("task", "questions", "bits per byte of the answer", *RULES)]
    for name, score in scores.items():
        right = [f"{score.accuracy[r]:.3f}" if r in score.accuracy else "" for r in RULES]
        rows.append((name, f"{score.num_questions:,}", f"{score.bits_per_byte:.4f}", *right))
    return rows
