"""`assay ablate study.yaml`: run what is missing, compare, report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pipeline.config import ConfigError
from trainer.ablation.report import write_report
from trainer.ablation.results import compare, read_scores
from trainer.ablation.runs import TRAIN, finished, run_all
from trainer.ablation.study import Study, changes, load_study
from trainer.ablation.wording import sentence
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

  assay ablate study.yaml --dry-run                # arms, differences, runs, tokens
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
    options = parser.parse_args(argv)
    study = load_study(options.study)
    if options.dry_run:
        print(outline(study))
        return 0
    if options.report_only:
        _require_finished(study)
    else:
        run_all(study, Progress(), train)
    outcome = compare(study, read_scores(study))
    paths = write_report(study, outcome)
    for arm in outcome.verdicts:
        print(sentence(study, outcome, arm))
    print("\n".join(f"report: {path}" for path in paths))
    return 0


def outline(study: Study) -> str:
    """What would run: arms, their declared differences, runs and tokens."""
    settings = study.settings
    lines = [settings.question, ""]
    for arm, declared in settings.arms.items():
        runs = study.runs_of(arm)
        done = sum(finished(run) for run in runs)
        lines.append(
            f"arm {arm}{' (baseline)' if arm == study.baseline else ''}: {len(runs)} runs x "
            f"{runs[0].run['tokens']:,} tokens, {done} finished"
        )
        lines += [f"    {key}: {value}" for key, value in changes(declared).items()]
    left = [run for run in study.runs if not finished(run)]
    lines += [
        "",
        f"to run: {len(left)} of {len(study.runs)} runs, "
        f"{sum(run.run['tokens'] for run in left):,} training tokens, "
        f"{settings.workers} at a time",
        f"decides: bits per byte, mean over {_weights(study)}; lower is better",
        f"output: {study.folder}",
    ]
    if len(settings.seeds) < 3:
        lines.append(f"{len(settings.seeds)} seeds: the verdict will be undecided; give 3 or more")
    return "\n".join(lines)


def _weights(study: Study) -> str:
    return ", ".join(
        f"{name} ({weight:g})" for name, weight in study.settings.primary.languages.items()
    )


def _require_finished(study: Study) -> None:
    missing = [run for run in study.runs if not finished(run)]
    if missing:
        raise ConfigError(
            f"{study.path}: {len(missing)} of {len(study.runs)} runs are not finished under these "
            f"settings, data and code, for instance arm `{missing[0].arm}`, seed "
            f"{missing[0].seed}; call without --report-only"
        )
