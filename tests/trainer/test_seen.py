"""`assay windows`: the documents of a step, and the steps of a document, agree."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures.loader import Loader
from mixtures.plan import Plan, make_plan
from pipeline.config import ConfigError
from pipeline.files import write_json
from trainer.parallel.layout import Layout
from trainer.parallel.world import World, share
from trainer.seen import main
from trainer.settings import load_run

TINY = Tiny([Doc(f"sentence {n} of several words", url=f"https://a/{n}") for n in range(40)])
LENGTH, BATCH, RANKS = 16, 6, 4  # 6 windows a step


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that has begun, with 4 ranks."""
    root = tmp_path_factory.mktemp("seen")
    write_corpus(root / "web", TINY)
    spec = {"corpora": {"web": "web"}, "sequence_length": LENGTH, "packing": "best_fit"}
    (root / "mixture.yaml").write_text(yaml.safe_dump(spec | {"sources": {"all": {"from": "web"}}}))
    settings = {"mixture": "mixture.yaml", "model": "0.4M", "tokens": LENGTH * 100}
    (root / "run.yaml").write_text(yaml.safe_dump(settings | {"batch_tokens": LENGTH * BATCH}))
    folder = root / "run"
    folder.mkdir()
    write_json(folder / "plan.json", make_plan(root / "mixture.yaml", LENGTH * 100).to_dict())
    record = {"settings": load_run(root / "run.yaml").model_dump(mode="json"), "processes": RANKS}
    write_json(folder / "run.json", record)
    return folder


def asked(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def plan_of(run: Path) -> Plan:
    return make_plan(run.parent / "mixture.yaml", LENGTH * 100, pack=False)


def test_the_documents_of_a_step(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = asked(capsys, run, "--step", 3)
    seen = Loader(plan_of(run)).documents_at(2 * BATCH, BATCH)
    for at, (source, names) in enumerate(seen):
        mine = [row for row in rows if row["position"] == 2 * BATCH + at]
        assert [(row["source"], row["id"]) for row in mine] == [(source, name) for name in names]
        assert mine[0]["begin"] == 0
        assert all(a["end"] == b["begin"] for a, b in itertools.pairwise(mine))
        assert mine[-1]["end"] <= LENGTH + 1, "padding is no document"
        ranks = [
            share(BATCH, World(rank, RANKS, torch.device("cpu"), None, Layout(fsdp=RANKS)))
            for rank in range(RANKS)
        ]
        (rank,) = [r for r, (first, num, _) in enumerate(ranks) if first <= at < first + num]
        assert {row["rank"] for row in mine} == {rank}
    numbers = {TINY.id(n): n for n in range(40)}
    assert {row["url"] for row in rows} == {f"https://a/{numbers[row['id']]}" for row in rows}
    assert {(row["step"], row["corpus"], row["corpus_source"]) for row in rows} == {
        (3, "web", "web")
    }


def test_the_steps_of_a_document(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every step in which a document is listed, and no other."""
    plan = plan_of(run)
    listed: dict[str, list[tuple[int, int, int]]] = {}
    for step in range(1, -(-plan.num_windows // BATCH) + 1):
        for row in asked(capsys, run, "--step", step):
            place = step, row["position"], row["begin"]
            listed.setdefault(row["id"], []).append(place)
    for n in (0, 7, 31):
        rows = asked(capsys, run, "--document", TINY.id(n))
        places = [(row["step"], row["position"], row["begin"]) for row in rows]
        assert places == listed.get(TINY.id(n), [])
        assert len(places) > 1, "the run goes through its source more than once"


def test_on_a_screen(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run), "--step", "1", "--ranks", "1"]) == 0
    first, head, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith(f"1 step, {BATCH} windows, ")
    assert head.split() == "step window rank epoch tokens document source url".split()
    assert all(line.split()[:3:2] == ["1", "0"] for line in lines)
    assert main([str(run), "--document", "00" * 16]) == 0
    assert "stands in no window of this run" in capsys.readouterr().out


def test_mistakes(run: Path, tmp_path: Path) -> None:
    bare = tmp_path / "plan.json"
    printed = json.loads((run / "plan.json").read_text()) | {"selection": {"heldout": 0}}
    bare.write_text(json.dumps(printed))
    for arguments, message in (
        ([run, "--step", 0], "step 0: the run has 17 steps, from 1 to 17"),
        ([run, "--step", 18], "step 18: the run has 17 steps"),
        ([run, "--document", "abc"], "--document abc: not 32 hex digits; `assay sql"),
        ([bare, "--step", 1], "plan without a run: say how large a step is"),
        ([tmp_path / "no", "--step", 1], "no does not exist; name the folder of a run"),
    ):
        with pytest.raises(ConfigError, match=message):
            main([*map(str, arguments)])
    assert main([str(bare), "--step", "50", "--batch-tokens", "32"]) == 0
