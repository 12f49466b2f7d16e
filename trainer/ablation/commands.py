"""`assay ablate study.yaml`: run what is missing, compare, report."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence

from mixtures.commands import table
from mixtures.plan import Plan
from pipeline.amounts import counted
from pipeline.config import ConfigError
from trainer.ablation.plans import plan_arms
from trainer.ablation.report import write_report
from trainer.ablation.results import compare, read_scores
from trainer.ablation.runs import TRAIN, finished, outdated, run_all
from trainer.ablation.study import Study, changes, load_study
from trainer.ablation.wording import percent, sentence
from trainer.metrics import Progress

EXAMPLE = """\
example of a study.yaml:
  question: Does filtering help at equal training tokens?
  base: {mixture: mixture.yaml, run: run.yaml}
  arms:
    as-it-comes: {}                                # the baseline: the first arm
    filtered: {mixture: {unique: near, sources.web.where: "gopher.pass"}}
  seeds: [1, 2, 3]                                 # at least 3 for a verdict
  primary: {languages: {zh: 0.5, en: 0.5}}         # the one number that decides

  assay ablate study.yaml --dry-run                # arms, differences, documents, tokens, epochs
  assay ablate study.yaml                          # run what is missing, then report
"""


def ablate(argv: Sequence[str], train: Sequence[str] = TRAIN) -> int:
    """Run the verb; `train` is the command that trains one run."""
    parser = argparse.ArgumentParser(
        prog="assay ablate",
        description="Which arm of a study is better, and how sure is that.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("study", help="study.yaml")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="show what would run; write nothing")
    mode.add_argument("--report-only", action="store_true", help="write the report, run nothing")
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="train finished runs of other settings, data or code again, over what they left",
    )
    options = parser.parse_args(argv)
    study = load_study(options.study)
    progress = Progress()
    total = math.fsum(study.settings.primary.languages.values())
    if not math.isclose(total, 1):
        progress.line(f"weights of `primary.languages` sum to {total:g}; shares: {_shares(study)}")
    if options.dry_run:
        print(outline(study, plan_arms(study, study.settings.arms, progress)))
        return 0
    if options.report_only:
        _require_finished(study)
    else:
        if not options.fresh:
            _refuse_outdated(study)
        left = dict.fromkeys(run.arm for run in study.runs if not finished(run))
        plan_arms(study, left, progress)
        run_all(study, progress, train)
    outcome = compare(study, read_scores(study))
    paths = write_report(study, outcome)
    for arm in outcome.verdicts:
        print(sentence(study, outcome, arm))
    print("\n".join(f"report: {path}" for path in paths))
    return 0


def outline(study: Study, plans: Mapping[str, Plan]) -> str:
    """What would run: arms, their declared differences, what they train on, runs and tokens."""
    settings = study.settings
    lines = [settings.question, ""]
    for arm, declared in settings.arms.items():
        runs = study.runs_of(arm)
        done = sum(finished(run) for run in runs)
        role = " (baseline)" if arm == study.baseline else ""
        lines.append(
            f"arm {arm}{role}: {counted(len(runs), 'run')} x {runs[0].run['tokens']:,} tokens, "
            f"{done} finished"
        )
        lines += [f"    {key}: {value}" for key, value in changes(declared).items()]
        lines += [f"    {line}" for line in _sources(plans[arm])]
    left = [run for run in study.runs if not finished(run)]
    if outdated(study):
        lines += ["", _of_other_settings(study)]
    lines += [
        "",
        f"to run: {len(left)} of {counted(len(study.runs), 'run')}, "
        f"{sum(run.run['tokens'] for run in left):,} training tokens, "
        f"{settings.workers} at a time",
        f"decides: bits per byte, mean over {_shares(study)}; lower is better",
        f"output: {study.folder}",
    ]
    if len(settings.seeds) < 3:
        lines.append(
            f"{counted(len(settings.seeds), 'seed')}: the verdict will be undecided; give 3 or more"
        )
    return "\n".join(lines)


def _sources(plan: Plan) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("source", "documents", "unique tokens", "epochs")]
    rows += [
        (s.name, f"{s.documents:,}", f"{s.num_tokens:,}", f"{s.epochs:.2f}") for s in plan.sources
    ]
    return table(rows)


def _shares(study: Study) -> str:
    shares = study.settings.primary.shares().items()
    return ", ".join(f"{name} {percent(share)}" for name, share in shares)


def _refuse_outdated(study: Study) -> None:
    if outdated(study):
        raise ConfigError(
            f"{study.path}: {_of_other_settings(study)}; give another `output` to keep them, or "
            "--fresh to train these again: their scores and the report are then replaced"
        )


def _of_other_settings(study: Study) -> str:
    return (
        f"{counted(len(outdated(study)), 'finished run')} in {study.folder} of other settings, "
        "data or code than now"
    )


def _require_finished(study: Study) -> None:
    missing = [run for run in study.runs if not finished(run)]
    if missing:
        raise ConfigError(
            f"{study.path}: not finished under these settings, data and code: {len(missing)} of "
            f"{counted(len(study.runs), 'run')}, for instance arm `{missing[0].arm}`, seed "
            f"{missing[0].seed}; call without --report-only"
        )
