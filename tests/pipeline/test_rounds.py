"""Components in rounds: the bytes of one union-find, for any partitions, blocks and workers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline import prepare, rounds, runners, schema
from pipeline.failures import StepError
from pipeline.files import read_json
from pipeline.settings import load_corpus
from pipeline.stages import Job
from pipeline.tables import write_columns
from pipeline.transforms import contraction, near, near_join
from pipeline.transforms.contraction import Step


def write_forests(root: Path, num: int, seed: int) -> int:
    """Edges between documents of nine parts, pairs, stars and a chain; returns how many."""
    pick = np.random.default_rng(seed)
    docs = pick.permutation((np.arange(9)[:, None] << 32 | np.arange(300)).ravel()).astype("u8")
    chain = np.stack([docs[:99], docs[1:100]], axis=1)
    star = np.stack([np.repeat(docs[100], 400), docs[101:501]], axis=1)
    pairs = docs[600:2_600].reshape(-1, 2)
    edges = np.concatenate([chain, star, pairs, pairs[::3]])
    owner = pick.integers(0, num, len(edges))
    for number in range(num):
        mine = edges[owner == number]
        path = near_join.forest_output(root, number)
        write_columns(path, schema.EDGES, [mine[:, 0], mine[:, 1]])
    return len(edges)


def in_this_process(root: Path, made: list[str]) -> Callable[[Step], int]:
    def run(step: Step) -> int:
        made.append(step.name)
        return sum(step.work(root, n).get("changed", 0) for n in range(step.partitions))

    return run


def components(root: Path) -> bytes:
    return near.components_output(root).read_bytes()


@pytest.mark.parametrize("forests", [1, 5])
@pytest.mark.parametrize("edges_a_partition", [150, 10_000])
def test_rounds_make_the_bytes_of_one_union_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forests: int, edges_a_partition: int
) -> None:
    num_edges = write_forests(tmp_path, forests, seed=forests)
    counters = near_join.join(tmp_path, forests)
    whole = components(tmp_path)
    monkeypatch.setattr(contraction, "EDGES_A_PARTITION", edges_a_partition)
    monkeypatch.setattr(contraction, "PARTS_AT_A_TIME", 4)
    made: list[str] = []
    taken = contraction.in_rounds(forests, num_edges, in_this_process(tmp_path, made))
    assert components(tmp_path) == whole
    assert counters == {"candidates": 100 + 401 + 2_000, "components": 1 + 1 + 1_000}
    assert 3 <= taken <= 8
    assert len(made) == 2 * taken + 3
    assert made[:3] == ["contraction/00-told", "contraction/01-large", "contraction/01-small"]
    assert made[-2:] == [f"contraction/{taken:02d}-stars", "components"]


@pytest.mark.parametrize("most", [10, 10_000])
def test_corpora_joined_together_take_rounds_where_they_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    write_forests(tmp_path, 3, seed=3)
    near_join.join(tmp_path, 3)
    whole = components(tmp_path)
    monkeypatch.setattr(contraction, "ONE_PROCESS_EDGES", most)
    said = []

    def each(
        work: Callable[[int], dict[str, int]], numbers: list[int], what: str
    ) -> list[dict[str, int]]:
        said.append(what)
        return [work(number) for number in numbers]

    contraction.unite(tmp_path, 3, each)
    assert components(tmp_path) == whole
    assert (len(said) > 4) == (most == 10)


def waiting(many_parts: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a corpus whose components are to be made again, in rounds; its corpus.yaml."""
    shutil.copytree(many_parts.parent, folder)
    (folder / "corpus" / "stats" / "components" / "part-00000.json").unlink()
    monkeypatch.setattr(contraction, "ONE_PROCESS_EDGES", 0)
    monkeypatch.setattr(contraction, "EDGES_A_PARTITION", 2)
    return folder / "corpus.yaml"


def joined(root: Path) -> dict[str, bytes]:
    tables = ("joins/components", "joins/candidates", "pairs", "clusters")
    files = (path for table in tables for path in (root / table).rglob("part-*"))
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


@pytest.mark.parametrize("workers", [1, 2])
def test_prepare_makes_them_as_successive_runs_of_beam(
    many_parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    settings = waiting(many_parts, tmp_path / "again", monkeypatch)
    made = prepare.prepare(load_corpus(settings), runners.Chosen("threads", workers))
    assert made.made["components"] == 1
    assert joined(made.root) == joined(many_parts)
    known = read_json(many_parts / "corpus.json")["stages"]["components"]["totals"]
    assert made.manifest["stages"]["components"]["totals"] == known
    assert known["components"] >= 3
    assert not (made.root / "joins" / "contraction").exists()
    assert prepare.prepare(load_corpus(settings), runners.Chosen("threads", workers)).made == {}


def test_a_run_that_stopped_between_goes_on_at_its_step(
    many_parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = waiting(many_parts, tmp_path / "again", monkeypatch)
    run_step = rounds.run_step

    def stopped(job: Job, step: Step, partition: int) -> int:
        if step.name.endswith("small"):
            raise RuntimeError("stopped")
        return run_step(job, step, partition)

    monkeypatch.setattr(rounds, "run_step", stopped)
    with pytest.raises(StepError, match="stopped"):
        prepare.prepare(load_corpus(settings), runners.Chosen("inline", 1))
    folder = tmp_path / "again" / "corpus" / "joins" / "contraction"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("part-*")}
    assert {path.parent.name for path in before} == {"00-told", "01-large"}
    monkeypatch.setattr(rounds, "run_step", run_step)
    monkeypatch.setattr(prepare, "prune", lambda _: None)
    made = prepare.prepare(load_corpus(settings), runners.Chosen("inline", 1))
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert joined(made.root) == joined(many_parts)
