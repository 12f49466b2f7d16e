"""`assay model`: a run as transformers loads it, and a run that goes on from such a folder."""

from __future__ import annotations

import io
import json
import types
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_run
import torch

from mixtures import heldout
from pipeline.config import ConfigError
from trainer import cli, loop
from trainer.attention import Scope
from trainer.interchange import commands, export
from trainer.metrics import Progress
from trainer.settings import load_run
from trainer.trained import trained

transformers = pytest.importorskip("transformers")

Write = Callable[..., Path]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def run(data: Path, run_yaml: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run of two steps."""
    monkeypatch.setattr(export, "heldout_sets", lambda run: tiny_run.heldout_sets())
    path = run_yaml("a", tokens=256, evaluate={"every": "final"})
    tiny_run.train(path)
    return path.parent / "runs" / "a"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_exported_is_the_model(
    run: Path, tmp_path: Path, dtype: str, capsys: Captured
) -> None:
    target = tmp_path / "hf"
    assert cli.main(["model", "export", str(run), "--output", str(target), "--dtype", dtype]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"{target}: 2 layers, {dtype}, of {run}/checkpoints/step-00000002")
    assert "logits on " in told[1]
    assert "the same first choice at 100.00% of places" in told[1]
    theirs = transformers.AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32)
    read = transformers.AutoTokenizer.from_pretrained(target)
    ids = torch.tensor([read("the cat sat on 我们")["input_ids"]])
    model = trained(run).model.to(getattr(torch, dtype)).float()
    with torch.no_grad():
        ours = model(ids, Scope(torch.zeros_like(ids)))
        torch.testing.assert_close(theirs(input_ids=ids).logits, ours, rtol=1e-4, atol=1e-5)
    record = json.loads((target / "assay.json").read_text())
    assert (record["step"], record["dtype"], record["run"]) == (2, dtype, "a")
    assert record["proof"]["largest"] < 1e-4
    assert sorted(path.name for path in tmp_path.glob(".hf*")) == []


def test_a_difference_above_the_tolerance_leaves_nothing(
    run: Path, tmp_path: Path, capsys: Captured
) -> None:
    target = tmp_path / "hf"
    command = ["model", "export", str(run), "--output", str(target), "--tolerance=-1"]
    assert cli.main(command) == 2
    assert "not exported: logits on" in capsys.readouterr().err
    assert not target.exists()
    assert list(tmp_path.glob(".hf*")) == []


def test_another_tokenizer_there_is_no_export(
    run: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other:
        def __call__(self, text: str, **options: object) -> dict[str, list[int]]:
            return {"input_ids": [0]}

    monkeypatch.setattr(
        transformers.AutoTokenizer, "from_pretrained", lambda *given, **options: Other()
    )
    assert cli.main(["model", "export", str(run), "--output", str(tmp_path / "hf")]) == 2
    assert "makes other tokens of a held-out text, from token 0 on" in capsys.readouterr().err
    assert not (tmp_path / "hf").exists()


def test_a_taken_output_stays(run: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "hf").mkdir()
    assert cli.main(["model", "export", str(run), "--output", str(tmp_path / "hf")]) == 2
    assert "is there already; name another or delete it" in capsys.readouterr().err


@pytest.fixture
def exported(run: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "hf"
    assert cli.main(["model", "export", str(run), "--output", str(folder)]) == 0
    return folder


def test_a_run_goes_on_from_the_weights_of_a_folder(
    run: Path, exported: Path, run_yaml: Write
) -> None:
    path = run_yaml("b", tokens=256, initial="hf", learning_rate=1e-9, model=None)
    path.write_text(path.read_text().replace("model: null\n", ""))
    settings = load_run(path)
    assert settings.model.shape == trained(run).run.model.shape
    loop.train(settings, progress=Progress(io.StringIO()))
    found, expected = trained(path.parent / "runs" / "b").model, trained(run).model
    for (name, a), b in zip(found.named_parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6, msg=name)


def test_a_model_beside_initial_has_to_be_the_same(exported: Path, run_yaml: Write) -> None:
    path = run_yaml("b", initial="hf", model="0.4M")
    with pytest.raises(ConfigError, match="`initial: hf` says what the model is"):
        load_run(path)
    with pytest.raises(ConfigError, match=r"config\.json: no such file"):
        load_run(run_yaml("b", initial="nowhere"))


def test_check_proves_and_tells_the_line(
    exported: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixture = types.SimpleNamespace(corpora={})
    monkeypatch.setattr(commands, "load_mixture", lambda path: mixture)
    monkeypatch.setattr(heldout, "evaluation_sets", lambda roots, most: tiny_run.heldout_sets())
    capsys.readouterr()
    command = ["model", "check", str(exported), "--mixture", "mixture.yaml"]
    assert cli.main(command) == 0
    told = capsys.readouterr().out
    assert told.endswith(f"in run.yaml, in place of `model`:\ninitial: {exported}\n")
    config = json.loads((exported / "config.json").read_text())
    (exported / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}))
    assert cli.main(command) == 2
    assert "8 more weights have no place in the model here" in capsys.readouterr().err
