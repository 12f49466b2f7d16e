"""Run the pipeline on the runner that was chosen. What knows Beam: this, build.py and workers.py.

FnApiRunner is named for the local ones: DirectRunner first tries to download Prism, without a time
limit.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager

from pipeline import rounds, turns, workers  # isort: skip (the workers silence Beam's log, then load it)

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    PipelineOptions,
    PortableOptions,
    _BeamArgumentParser,
)
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import EmbeddedPythonGrpcEnvironment, Environment

from pipeline.build import build, build_rest, build_step, build_sweep
from pipeline.config import ConfigError
from pipeline.failures import explained
from pipeline.runners import Chosen
from pipeline.stages import Job

Steps = Callable[[beam.Pipeline, Job, int | None], None]
ANSWER_SECONDS = 10.0  # for a connection to a job service
SCHEMES = ("dns", "ipv4", "ipv6", "unix", "xds")  # of addresses that only gRPC can look up

# Where steps run, for the runners of this machine.
LOCAL: dict[str, Callable[[Job], AbstractContextManager[Environment | None]]] = {
    "processes": workers.watched,
    "threads": lambda _: contextlib.nullcontext(EmbeddedPythonGrpcEnvironment()),
    "inline": lambda _: contextlib.nullcontext(),
}
# Beam's class, and the options that we add where the user gave none.
ELSEWHERE: dict[str, tuple[str, dict[str, str]]] = {
    "portable": (
        "apache_beam.runners.portability.portable_runner:PortableRunner",
        {"--job_endpoint": "embed", "--environment_type": "LOOPBACK"},
    ),
    "dask": ("apache_beam.runners.dask.dask_runner:DaskRunner", {}),
    "spark": ("beam_pyspark_runner.pyspark_runner:PySparkRunner", {}),
    "dataflow": ("apache_beam.runners.dataflow.dataflow_runner:DataflowRunner", {}),
    "flink": ("apache_beam.runners.portability.flink_runner:FlinkRunner", {}),
}


def run(job: Job, chosen: Chosen, shown: AbstractContextManager[None]) -> None:
    """Run to the end.

    Args:
        shown: progress, whose thread must not run yet when workers are forked.

    Raises:
        CorpusError, StepError: as failures.explained.
    """
    if chosen.name in LOCAL:
        run_local(job, chosen.name, chosen.workers, shown)
    else:
        with shown, explained(job.root):
            _run_elsewhere(job, chosen)


def run_sweep(
    job: Job, stages: tuple[str, ...], num_workers: int, shown: AbstractContextManager[None]
) -> None:
    """Run some text stages alone, on this machine; raises as `run` does."""
    run_local(job, "processes", num_workers, shown, functools.partial(build_sweep, stages=stages))


def run_local(
    job: Job,
    name: str,
    num_workers: int,
    shown: AbstractContextManager[None],
    first: Steps = build,
) -> None:
    lanes = 1 if name == "inline" else num_workers
    options = PipelineOptions([], direct_num_workers=lanes)
    where = LOCAL[name if lanes > 1 else "inline"]
    with (
        turns.fresh(job.root),
        where(job) as environment,
        shown,
        explained(job.root, workers.lost),
    ):

        def run(steps: Steps) -> None:
            with beam.Pipeline(runner=FnApiRunner(environment), options=options) as pipeline:
                steps(pipeline, job, lanes)

        _in_runs(job, run, first)


def _run_elsewhere(job: Job, chosen: Chosen) -> None:
    path, added = ELSEWHERE[chosen.name]
    module, runner = path.split(":")
    make = getattr(importlib.import_module(module), runner)
    options = PipelineOptions(_flags(chosen, added))
    endpoint = options.view_as(PortableOptions).job_endpoint
    if endpoint not in (None, "embed"):
        _require_answer(endpoint)

    def run(steps: Steps) -> None:
        with beam.Pipeline(runner=make(), options=options) as pipeline:
            steps(pipeline, job, None)

    _in_runs(job, run, build)


def _in_runs(job: Job, run: Callable[[Steps], None], first: Steps) -> None:
    """One run, or what it left off where components take rounds."""
    run(first)
    if rounds.are_left(job):
        rounds.run_rounds(
            job,
            lambda name, count, work: run(lambda p, *_: build_step(p, name, count, work)),
        )
        run(build_rest)


def _require_answer(endpoint: str) -> None:
    """Beam would wait for minutes, without a word.

    Raises:
        ConfigError: nobody listens at the address of the job service.
    """
    host, _, port = endpoint.rpartition(":")
    if endpoint.split(":")[0] in SCHEMES:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--job_endpoint {endpoint}: no job service answers there ({error}); start one, or "
            "leave the option out: assay starts its own"
        ) from None


def _flags(chosen: Chosen, added: dict[str, str]) -> list[str]:
    given = {option.split("=")[0] for option in chosen.options}
    return [*chosen.options, *(f"{k}={v}" for k, v in added.items() if k not in given)]


def option_parser(name: str) -> _BeamArgumentParser:
    """All options that Beam knows, and those of this runner."""
    if name in ("dask", "spark"):
        importlib.import_module(ELSEWHERE[name][0].split(":")[0])  # declares its options
    parser = _BeamArgumentParser(add_help=False, allow_abbrev=False)
    for options in dict.fromkeys(PipelineOptions.__subclasses__()):
        options._add_argparse_args(parser)
    return parser
