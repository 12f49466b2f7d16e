"""Where the pipeline runs: one visible table, and what is refused before anything runs.

The steps are the same for all (build.py). What a runner is given beyond its name are Beam's own
options, after `--`. Nothing here loads Beam until a runner that takes options is named.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pipeline.config import ConfigError

Options = dict[str, object]  # of Beam, by name: those that were given


@dataclass(frozen=True)
class Runner:
    about: str
    module: str | None = None  # what has to be installed
    install: str = ""
    takes_options: bool = True
    needs: tuple[str, ...] = ()  # options that must be given
    check: Callable[[Options, str], str | None] = lambda options, output: None  # what is wrong


@dataclass(frozen=True)
class Chosen:
    """A runner whose name, package and options were checked."""

    name: str
    workers: int
    options: tuple[str, ...] = ()


def _dataflow(options: Options, output: str) -> str | None:
    if not str(options["temp_location"]).startswith("gs://"):
        return f"--temp_location {options['temp_location']}: Dataflow wants a gs:// folder"
    if not output.startswith("gs://"):
        return (
            f"output {output}: the workers of Dataflow see no disk of yours; set `output: gs://...`"
            " in corpus.yaml"
        )
    if not (options.get("sdk_container_image") or options.get("extra_packages")):
        return (
            "workers need assay: give --sdk_container_image (examples/dataflow/Dockerfile), or "
            "--extra_package assay-*.whl (slower start)"
        )
    return None


def _external(options: Options, output: str) -> str | None:
    if options.get("environment_type") == "EXTERNAL" and not options.get("environment_config"):
        return "--environment_type EXTERNAL: name the pool, --environment_config HOST:PORT"
    return None


RUNNERS: dict[str, Runner] = {
    "processes": Runner("worker processes of this machine (default)", takes_options=False),
    "threads": Runner("threads of this process: for kernels, not for HTML", takes_options=False),
    "inline": Runner("this process, one step after another", takes_options=False),
    "portable": Runner(
        "a Beam job service: --job_endpoint HOST:PORT, or one started here; workers by "
        "--environment_type: LOOPBACK (default), EXTERNAL with --environment_config HOST:PORT",
        check=_external,
    ),
    "dask": Runner(
        "a Dask cluster: --dask_client_address HOST:PORT, or one started here",
        module="distributed",
        install="pip install 'assay[dask]'",
    ),
    "spark": Runner(
        "Spark, through PySpark: SPARK_HOME or `spark-submit` decide where",
        module="beam_pyspark_runner",
        install="pip install 'assay[spark]' && pip install --no-deps 'beam-pyspark-runner==0.0.3'",
    ),
    "dataflow": Runner(
        "Google Cloud Dataflow: examples/dataflow",
        module="apitools",
        install="pip install 'assay[dataflow]'",
        needs=("project", "region", "temp_location"),
        check=_dataflow,
    ),
    "flink": Runner(
        "a Flink cluster: examples/flink",
        needs=("flink_master", "environment_type"),
        check=_external,
    ),
}


def choose(name: str, workers: int, options: Sequence[str], output: str) -> Chosen:
    """Check all that can be checked before anything runs.

    Raises:
        ConfigError: an unknown runner or option, a missing package or option; names the remedy.
    """
    if name not in RUNNERS:
        hint = _nearest(name, RUNNERS) or f"known: {', '.join(RUNNERS)}"
        raise ConfigError(f"--runner {name}: unknown; {hint}")
    runner = RUNNERS[name]
    if runner.module and importlib.util.find_spec(runner.module) is None:
        raise ConfigError(f"--runner {name}: not installed; {runner.install}")
    if options and not runner.takes_options:
        raise ConfigError(f"--runner {name} takes no options after --: {' '.join(options)}")
    if runner.takes_options:
        given = _parse(name, options)
        missing = [f"--{option}" for option in runner.needs if not given.get(option)]
        if missing:
            raise ConfigError(f"--runner {name} needs {', '.join(missing)}, after --")
        wrong = runner.check(given, output)
        if wrong:
            raise ConfigError(f"--runner {name}: {wrong}")
    return Chosen(name, workers, tuple(options))


def _parse(name: str, options: Sequence[str]) -> Options:
    """Beam's options by name; Beam alone would only warn of one that it does not know."""
    from pipeline.launch import option_parser

    parser = option_parser(name)
    known, unknown = parser.parse_known_args(list(options))
    if unknown:
        hint = _nearest(unknown[0].split("=")[0], parser._option_string_actions)
        raise ConfigError(f"--runner {name}: unknown option {unknown[0]}; {hint or 'see Beam'}")
    return {k: value for k, value in vars(known).items() if value != parser.get_default(k)}


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else ""


def table() -> str:
    """The runners, for --help."""
    width = max(map(len, RUNNERS))
    return "\n".join(f"  {name:<{width}}  {runner.about}" for name, runner in RUNNERS.items())
