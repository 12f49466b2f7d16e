"""The key `objective`: names, mappings, ids of a tokenizer, and what is missing there."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.config import ConfigError, check
from trainer.objective_settings import resolve
from trainer.objectives import Objective
from trainer.parallel.layout import Layout, check_fit
from trainer.rewriting import Denoiser, FillIn
from trainer.settings import RunSettings

BASE = {"mixture": "m.yaml", "model": "0.4M", "tokens": "1k"}
FIM = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")


@pytest.fixture(autouse=True)
def _no_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokenizer.json of these plans holds added tokens and nothing else."""
    there = lambda plan: Path(plan.tokenizer_file)  # noqa: E731
    monkeypatch.setattr("trainer.objective_settings.tokenizer_file", there)


def _resolve(folder: Path, value: object, num_sentinels: int = 40, encoder: bool = False) -> Any:
    names = [*FIM, "[R]", "[S]", "[X]", *(f"<extra_id_{n}>" for n in range(num_sentinels))]
    added = [{"content": name, "id": 500 + at} for at, name in enumerate(names)]
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({"added_tokens": added}))
    plan: Any = SimpleNamespace(
        tokenizer_file=str(path),
        vocab_size=540,
        eos_id=7,
        sequence_length=128,
        sources=[SimpleNamespace(name="code"), SimpleNamespace(name="web")],
    )
    run = check({**BASE, "objective": value}, RunSettings, "run.yaml")
    return resolve(run.objective, plan, encoder)


def test_each_objective_by_its_name_and_by_its_keys(tmp_path: Path) -> None:
    assert _resolve(tmp_path, "causal") == Objective()
    assert _resolve(tmp_path, "prefix_lm") == Objective(prefix=(0.0, 1.0))
    prefix = _resolve(tmp_path, {"prefix_lm": {"least": 0.25, "most": 0.5}}, encoder=True)
    assert prefix == Objective(prefix=(0.25, 0.5), encoder=True)
    spans = _resolve(tmp_path, "span_corruption")
    assert spans == Objective(denoisers=(Denoiser(0.15, 3),), sentinels=tuple(range(506, 540)))
    fim = _resolve(tmp_path, {"fim": {"sources": {"code": 0.9}}})
    assert fim == Objective(fill_in=FillIn(500, 501, 502, 0.5, 0.5), eos=7, rates={"code": 0.9})
    modes = _resolve(tmp_path, {"ul2": {"modes": ["[R]", "[S]", "[X]"]}})
    assert [d.mode for d in modes.denoisers] == [503, 503, 504, 505, 505, 505, 505]
    assert [d.mean_span for d in modes.denoisers] == [3, 8, None, 3, 8, 64, 64]


@pytest.mark.parametrize(
    ("value", "sentinels", "message"),
    [
        ("span_corruption", 5, "may need 7 of '<extra_id_{}>', .* has 5; add special tokens"),
        ({"ul2": {"modes": ["[R]", "[S]", "[Y]"]}}, 40, "has no special token '\\[Y\\]' below 540"),
        ({"fim": {"tokens": ["a", "b", "c"]}}, 0, "has no special token 'a' .* name one of its"),
        ({"fim": {"sources": {"cod": 1}}}, 0, "the mixture has no source `cod`; it has code, web"),
        ({"fim": {}, "ul2": {}}, 40, "ul2 and fim: give one objective"),
        ("prefixlm", 0, "no objective 'prefixlm'; did you mean 'prefix_lm'"),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path, value: object, sentinels: int, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        _resolve(tmp_path, value, sentinels)


def test_ids_beyond_the_vocabulary_are_not_sentinels(tmp_path: Path) -> None:
    assert max(_resolve(tmp_path, "span_corruption", 100).sentinels) == 539


def test_an_encoder_needs_something_to_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="use prefix_lm, span_corruption or ul2"):
        _resolve(tmp_path, "causal", encoder=True)


def test_examples_that_grow_are_not_divided() -> None:
    run = RunSettings.model_validate({**BASE, "objective": "ul2"})
    with pytest.raises(ConfigError, match="parallel.context`: 2 does not go with `objective`"):
        check_fit(run, Layout(context=2), 128)
    check_fit(run, Layout(fsdp=2), 128)
