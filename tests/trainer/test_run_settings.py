"""run.yaml: amounts, presets, messages, and which keys may change on resume."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from pipeline.config import ConfigError, check
from trainer.model_settings import Model
from trainer.settings import RunSettings, changed_key, load_run
from trainer.shapes import PRESETS, Shape, dial

BASE = {"mixture": "mixture.yaml", "model": "0.4M", "tokens": "2M"}


def _yaml(folder: Path, text: str) -> Path:
    path = folder / "small.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_amounts_and_presets(tmp_path: Path) -> None:
    path = _yaml(
        tmp_path,
        "mixture: sub/mixture.yaml\nmodel: 0.4M\ntokens: 2M\nbatch_tokens: 16k\n"
        "schedule: {warmup: 1.5k, decay: 0.1}\nevaluate: {every: 100_000}\n",
    )
    run = load_run(path)
    assert (run.tokens, run.batch_tokens, run.evaluate.every) == (2_000_000, 16_000, 100_000)
    assert (run.schedule.warmup, run.schedule.decay) == (1500, 0.1)
    assert (run.model.width, run.model.depth, run.model.tied) == (64, 2, True)
    assert run.mixture == str(tmp_path / "sub/mixture.yaml")
    assert run.output == str(tmp_path / "runs/small")


def test_a_model_by_depth_by_likeness_and_with_mup() -> None:
    def model(value: object) -> Model:
        return RunSettings.model_validate({**BASE, "model": value}).model

    assert model({"depth": 12}).shape == model("100M").shape == dial(12)
    assert dial(12) == Shape(width=768, depth=12, heads=12, kv_heads=4, ffn=2048)
    deep = model({"like": "1B", "qk_norm": True, "parametrization": "mup"})
    assert deep.shape == replace(PRESETS["1B"], qk_norm=True, base_width=256, base_depth=4)
    with pytest.raises(ValueError, match="parametrization 'up': known are standard and mup"):
        model({"depth": 4, "parametrization": "up"})
    with pytest.raises(ValueError, match="no model of this name; did you mean '100M'"):
        model({"like": "100B"})


def test_a_record_of_before_a_key_was_there_is_read_with_its_default() -> None:
    old = RunSettings.model_validate(BASE).model_dump(mode="json")
    for key in ("qk_norm", "base_width", "encoder_depth"):
        del old["model"][key]
    del old["z_loss"]
    assert check(old, RunSettings, "run.json") == RunSettings.model_validate(BASE)


def test_changes_on_top(tmp_path: Path) -> None:
    path = _yaml(tmp_path, "mixture: m.yaml\nmodel: 0.4M\ntokens: 2M\n")
    run = load_run(path, {"model": "1M", "schedule.decay": 0.3, "tokens": "3M", "output": "x"})
    assert (run.model.width, run.schedule.decay, run.tokens) == (96, 0.3, 3_000_000)
    assert run.output == str(tmp_path / "x")
    with pytest.raises(ConfigError, match=r"--set: unknown key `sed`.*did you mean `seed`\?"):
        load_run(path, {"sed": 3})
    with pytest.raises(ConfigError, match="`tokens` has no keys below it"):
        load_run(path, {"tokens.x": 3})
    inner = load_run(path, {"objective.ul2.sentinels": "<{}>"})  # below a key that is not set
    assert inner.objective.ul2 is not None
    assert inner.objective.ul2.sentinels == "<{}>"
    with pytest.raises(ConfigError, match="take `tokens` out"):  # as in a file
        load_run(path, {"branch": {"from": "none", "at": "step-3", "decay": "1k"}})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "04M"}, "key `model`: no model of this name; did you mean '0.4M'?"),
        (
            {"tokens": "2 million"},
            "key `tokens`: not an amount: '2 million'; write",
        ),
        ({"tokens": 0}, "key `tokens`: expected 1 or more (value 0)"),
        (
            {"model": {"width": 30, "depth": 1, "heads": 4, "kv_heads": 2, "ffn": 8}},
            "key `model`: width 30 / heads 4 must be an even whole number",
        ),
        (
            {"model": {"width": 32, "depth": 1, "heads": 4, "kv_heads": 3, "ffn": 8}},
            "key `model`: heads 4 must be a multiple of kv_heads 3; change one",
        ),
        ({"model": {"depth": 0}}, "key `model.depth`: expected 1 or more (value 0)"),
        ({"betas": [0.9, 1.5]}, "key `betas.2nd`: expected less than 1.0 (value 1.5)"),
        (
            {"objective": {"prefix_lm": {"least": 0.8, "most": 0.2}}},
            "key `objective.prefix_lm`: least 0.8 is above most 0.2; swap them",
        ),
        ({"learning_rte": 1}, "unknown key `learning_rte` (value 1); did you mean `learning_rate`"),
    ],
)
def test_messages_name_key_value_and_remedy(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check({**BASE, **changes}, RunSettings, "run.yaml")
    assert str(caught.value).startswith(f"run.yaml: {message}")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({}, None),
        ({"seed": 1}, "seed"),
        ({"model": "1M"}, "model.depth"),
        ({"tokens": "3M"}, "tokens"),
        ({"schedule": {"decay": 0.5}}, "schedule.decay"),
        ({"output": "y", "mixture": "z.yaml", "threads": 2, "micro_batch": 1}, None),
        ({"evaluate": {"every": 5}, "checkpoint": {"keep": 9}, "compile": True}, None),
    ],
)
def test_which_keys_a_resumed_run_may_change(changes: dict[str, object], key: str | None) -> None:
    old, new = (RunSettings.model_validate({**BASE, **c}) for c in ({}, changes))
    assert changed_key(old.model_dump(mode="json"), new.model_dump(mode="json")) == key


@pytest.mark.parametrize("key", ["checkpoint", "evaluate"])
def test_every_counts_tokens_not_steps(tmp_path: Path, key: str) -> None:
    path = tmp_path / "run.yaml"
    run = {"mixture": "m.yaml", "model": "0.4M", "tokens": "2M", "batch_tokens": "16k"}
    path.write_text(yaml.safe_dump(run | {key: {"every": 4}}))
    message = (
        f"run.yaml: key `{key}.every`: 4 tokens, but one step takes 16000, so it would {key} after "
        "every step; it counts tokens, not steps: for every 4 steps write 64000, for each step"
    )
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_run(path)
    for every in (8_000, "64k", "final"):
        path.write_text(yaml.safe_dump(run | {key: {"every": every}}))
        load_run(path)


def test_a_published_plan_stands_at_its_url_and_a_cache_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    run = {"mixture": "s3://bucket/plan", "model": "0.4M", "tokens": "2M"}
    path.write_text(yaml.safe_dump(run | {"cache": {"folder": "shards", "max_bytes": "20GB"}}))
    found = load_run(path)
    assert found.mixture == "s3://bucket/plan"
    assert (found.cache.folder, found.cache.max_bytes) == (f"{tmp_path}/shards", 20 * 10**9)


def test_settings_written_out_in_full_are_read_as_they_were(tmp_path: Path) -> None:
    """So a study writes run.yaml for each of its runs: every key, also those that are not set."""
    path = tmp_path / "run.yaml"
    path.write_text("mixture: mixture.yaml\nmodel: 0.4M\ntokens: 2M\n")
    run = load_run(path)
    path.write_text(yaml.safe_dump(run.model_dump(mode="json")))
    assert load_run(path) == run


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": {"warmup": "2M"}}, "is as long as the run, `tokens: 2,000,000`"),
        (
            {"optimizer": "muon", "model": {"depth": 4, "parametrization": "mup"}},
            "use adamw, or leave mup out",
        ),
    ],
)
def test_what_cannot_come_true_is_refused_before_data_is_read(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        check({**BASE, **changes}, RunSettings, "run.yaml")
    check({**BASE, "schedule": {"warmup": "1.9M"}}, RunSettings, "run.yaml")
