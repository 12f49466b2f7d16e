"""The job graph: small, labelled, with explicit keys, and nothing of the main session in it."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.worker_start import job_of
from pipeline.stages import Job

NUM_FILES = 100_000
DATAFLOW_LIMIT_BYTES = 10 << 20  # of a job request: tfds #2711 met it with 38 MB
beam = pytest.importorskip("apache_beam")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A corpus of 100,000 input files, one shard each."""
    return job_of(NUM_FILES, tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module", params=[None, 2])
def graph(request: pytest.FixtureRequest, job: Job) -> Any:
    from pipeline.build import build

    pipeline = beam.Pipeline()
    build(pipeline, job, request.param)
    return pipeline.to_runner_api()


def test_the_graph_does_not_grow_with_the_inputs(graph: Any, job: Job) -> None:
    assert (job.root / "inputs.json").stat().st_size > DATAFLOW_LIMIT_BYTES
    assert graph.ByteSize() < 200_000


def test_every_step_is_labelled(graph: Any) -> None:
    """Beam's own labels, as `Map(<lambda>)`, change with its version; its own steps lie deeper."""
    steps = graph.components.transforms.items()
    ours = [step.unique_name for key, step in steps if key not in graph.root_transform_ids]
    ours = [name for name in ours if not name.startswith("Start/")]
    assert len(ours) > 20
    assert [name for name in ours if set("(<[_") & set(name)] == []
    assert {"Ingest", "Sweep", "Join heldout/Each/Group"} <= set(ours)


def test_keys_are_integers_with_a_coder_of_their_own(graph: Any) -> None:
    components = graph.components
    steps = components.transforms.values()
    groups = [step for step in steps if step.spec.urn == "beam:transform:group_by_key:v1"]
    assert len(groups) == 7  # four joins, and three times all parts are dealt
    for step in groups:
        grouped = components.pcollections[next(iter(step.inputs.values()))]
        pair = components.coders[grouped.coder_id]
        key = components.coders[pair.component_coder_ids[0]]
        assert pair.spec.urn == "beam:coder:kv:v1"
        assert key.spec.urn == "beam:coder:varint:v1"


def test_no_main_session_travels(graph: Any) -> None:
    payloads = [step.spec.payload for step in graph.components.transforms.values()]
    assert not any(b"__main__" in payload for payload in payloads)


def test_all_shards_are_found_on_a_worker(job: Job) -> None:
    from pipeline import build

    assert build._shard(70_007, job) == job.shards[70_007]
    assert len(list(build._parts(0, job))) == NUM_FILES
