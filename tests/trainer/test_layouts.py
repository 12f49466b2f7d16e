"""The layout matrix: every layout has the losses, norms and parameters of one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import clean_process
import layout_jobs as jobs
import pytest
import torch
from layout_jobs import Case

from trainer.parallel.world import World

ONE = World(0, 1, torch.device("cpu"), None)
PREFIX = {"prefix_lm": {"least": 0.2, "most": 0.8}}
QWEN = {"qk_norm": True, "qkv_bias": True, "kv_heads": 2}


def case(tied: bool = True, model: Case | None = None, **keys: Any) -> Case:
    """`keys` of `parallel`, but for `objective` and `precision`."""
    own = {name: keys.pop(name) for name in ("objective", "precision") if name in keys}
    return {"model": {"tied": tied, **(model or {})}, "parallel": keys, **own}


TWO = {
    "ddp": case(replicate=2),
    "fsdp": case(fsdp=2, tied=False),
    "tensor": case(tensor=2),
    "tensor, untied": case(tensor=2, tied=False),
    "context": case(context=2),
    "pipeline": case(pipeline=2),
    "pipeline, untied": case(pipeline=2, tied=False),
    "gpipe": case(pipeline=2, schedule="gpipe"),
    "interleaved": case(pipeline=2, schedule="interleaved"),
    "fsdp, recompute": case(fsdp=2, recompute=True),
    "prefix, context": case(context=2, objective=PREFIX),
    "prefix, tensor": case(tensor=2, objective=PREFIX),
    "prefix, pipeline": case(pipeline=2, objective=PREFIX),
    "qwen, tensor": case(tensor=2, model=QWEN),
    "qwen, context": case(context=2, model=QWEN),
    "bf16, fsdp": case(fsdp=2, precision="bf16"),
    "bf16, pipeline": case(pipeline=2, precision="bf16"),
    "bf16, context": case(context=2, precision="bf16"),
    "bf16, tensor": case(tensor=2, precision="bf16"),
}
FOUR = {
    "fsdp": case(fsdp=4),
    "ddp": case(replicate=4, tied=False),
    "hsdp": case(replicate=2, fsdp=2),
    "fsdp x tensor": case(fsdp=2, tensor=2),
    "fsdp x tensor, untied": case(fsdp=2, tensor=2, tied=False),
    "ddp x tensor": case(replicate=2, tensor=2),
    "fsdp x context": case(fsdp=2, context=2),
    "ddp x context": case(replicate=2, context=2),
    "context": case(context=4),
    "tensor x context": case(tensor=2, context=2),
    "pipeline": case(pipeline=4),
    "pipeline x fsdp": case(pipeline=2, fsdp=2),
    "pipeline x ddp": case(pipeline=2, replicate=2, tied=False),
    "pipeline x tensor": case(pipeline=2, tensor=2),
    "pipeline x context": case(pipeline=2, context=2),
    "interleaved x fsdp": case(pipeline=2, fsdp=2, schedule="interleaved"),
    "qwen, fsdp x tensor": case(fsdp=2, tensor=2, model=QWEN),
}


def one_process(case: Case) -> str:
    """What a case is without its layout."""
    return json.dumps({key: value for key, value in case.items() if key != "parallel"})


@pytest.fixture(scope="module")
def alone() -> dict[str, dict[str, Any]]:
    cases = {one_process(case) for case in (*TWO.values(), *FOUR.values())}
    return {key: jobs.train(jobs.settings(json.loads(key)), ONE) for key in cases}


@pytest.fixture(scope="module", params=[(2, TWO), (4, FOUR)], ids=["2", "4"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    size, cases = request.param
    folder = tmp_path_factory.mktemp(f"layouts-{size}")
    ranks = [(jobs.rank_of_matrix, (r, size, folder, list(cases.items()))) for r in range(size)]
    assert clean_process.run(folder, *ranks) == [0] * size
    return folder, cases


def test_losses_norms_and_parameters_are_those_of_one_process(
    found: tuple[Path, dict[str, Case]], alone: dict[str, dict[str, Any]]
) -> None:
    folder, cases = found
    for name, case in cases.items():
        expected = alone[one_process(case)]
        bf16 = case.get("precision") == "bf16"  # roundings differ, and Adam doubles them each step
        rel = 2e-3 if bf16 else 1e-6
        stages = [torch.load(path) for path in sorted(folder.glob(f"{name}-*.pt"))]
        whole: dict[str, torch.Tensor] = {}
        for stage in stages:
            assert stage["losses"] == pytest.approx(expected["losses"], rel=rel), name
            steps = 1 if bf16 else jobs.STEPS
            norms = pytest.approx(expected["norms"][:steps], rel=rel)
            assert stage["norms"][:steps] == norms, name
            assert stage["nats"] == pytest.approx(expected["nats"], rel=10 * rel), name
            whole |= stage["parameters"]
        assert whole.keys() == expected["parameters"].keys(), name
        for key, value in expected["parameters"].items() if not bf16 else ():
            torch.testing.assert_close(
                whole[key], value, rtol=1e-6, atol=1e-9, msg=f"{name}: {key}"
            )
