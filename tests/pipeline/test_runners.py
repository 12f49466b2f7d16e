"""What is refused before anything runs."""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Iterator

import pytest

from pipeline import runners
from pipeline.config import ConfigError
from pipeline.runners import RUNNERS, Chosen, choose


@pytest.fixture(autouse=True)
def _log() -> Iterator[None]:
    """What knows Beam's options silences the log of the whole process."""
    yield
    logging.disable(logging.NOTSET)


def refused(name: str, *options: str, output: str = "gs://b/runs/web") -> str:
    with pytest.raises(ConfigError) as caught:
        choose(name, 2, options, output)
    return str(caught.value)


def test_local_runners_take_a_name_only() -> None:
    assert choose("threads", 3, (), "runs/web") == Chosen("threads", 3)
    said = refused("threads", "--job_endpoint=a:1")
    assert said == "--runner threads takes no options after --: --job_endpoint=a:1"


def test_an_unknown_runner_names_the_nearest() -> None:
    assert refused("datafow") == "--runner datafow: unknown; did you mean dataflow?"
    assert refused("xyz") == f"--runner xyz: unknown; known: {', '.join(RUNNERS)}"


def test_a_missing_package_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert refused("dask") == "--runner dask: not installed; pip install 'assay[dask]'"
    for runner in RUNNERS.values():
        assert (runner.module is None) == (runner.install == "")


def test_an_unknown_option_names_the_nearest() -> None:
    said = refused("portable", "--job_endpont=localhost:8099")
    assert said == (
        "--runner portable: unknown option --job_endpont=localhost:8099; "
        "did you mean --job_endpoint?"
    )


def test_an_external_pool_needs_its_address() -> None:
    for more in ((), ("--flink_master=f:8081",)):
        name = "flink" if more else "portable"
        said = refused(name, *more, "--environment_type=EXTERNAL")
        assert said.endswith("name the pool, --environment_config HOST:PORT")
    pool = ("--environment_type=EXTERNAL", "--environment_config=h:5000")
    assert choose("portable", 1, pool, "runs/web").options == pool


def test_what_dataflow_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found("json") or found(name))
    project = ("--project=p", "--region=r")
    assert refused("dataflow", "--project=p") == (
        "--runner dataflow needs --region, --temp_location, after --"
    )
    assert "Dataflow wants a gs:// folder" in refused("dataflow", *project, "--temp_location=/tmp")
    options = (*project, "--temp_location=gs://b/tmp")
    assert "workers need assay" in refused("dataflow", *options)
    options += ("--sdk_container_image=image",)
    assert "see no disk of yours" in refused("dataflow", *options, output="/runs/web")
    assert choose("dataflow", 1, options, "gs://b/runs/web").options == options


def test_what_flink_needs() -> None:
    said = refused("flink", "--environment_type=LOOPBACK")
    assert said == "--runner flink needs --flink_master, after --"


def test_help_lists_all() -> None:
    listed = [re.split(r" +", line.strip())[0] for line in runners.table().splitlines()]
    assert listed == list(RUNNERS)
