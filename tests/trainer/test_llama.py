"""A Decoder equals the Llama, Qwen2 and Qwen3 of transformers of the same weights, both ways."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.config import ConfigError
from trainer.attention import Scope
from trainer.interchange.llama import config_of, name_there, shape_in, shape_of
from trainer.interchange.plain import plain
from trainer.interchange.proof import prove, their_model
from trainer.interchange.weights import left_over, load_into
from trainer.model import Decoder, initialize
from trainer.shapes import Shape

transformers = pytest.importorskip("transformers")

VOCABULARY = 61
SHAPE = Shape(width=32, depth=2, heads=4, kv_heads=2, ffn=48)
SHAPES = {
    "llama": SHAPE,
    "llama, untied": replace(SHAPE, tied=False, rope_base=500_000.0, epsilon=1e-6),
    "llama 3.1": replace(SHAPE, rope_factor=8.0, rope_trained=32),
    "llama, wide heads": replace(SHAPE, head=16),
    "qwen2": replace(SHAPE, qkv_bias=True),
    "qwen3": replace(SHAPE, qk_norm=True, head=12, tied=False),
}


def _theirs(shape: Shape, folder: Path) -> None:
    """A model of transformers with random weights, norms and biases too, in `folder`."""
    torch.manual_seed(0)
    config = config_of(shape, VOCABULARY + 3, 64, None, None)
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(**config)
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (parameter.ndim == 1))
    model.save_pretrained(folder)


def _texts() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, VOCABULARY, n) for n in (1, 2, 17, 64)]


@pytest.mark.parametrize("kind", SHAPES)
def test_the_logits_are_those_of_transformers(kind: str, tmp_path: Path) -> None:
    shape = SHAPES[kind]
    _theirs(shape, tmp_path)
    assert shape_in(tmp_path) == shape
    ours = Decoder(shape, VOCABULARY)  # transformers' vocabulary has three rows of padding more
    load_into(ours, tmp_path)
    assert left_over(ours, tmp_path) == []
    proof = prove(ours, their_model(tmp_path), _texts())
    assert proof.largest < 1e-4 * proof.spread
    assert proof.same_choice == 1.0
    assert (proof.num_tokens, proof.num_texts) == (84, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rope_base": 10_500.0},
        {"epsilon": 1e-2},
        {"rope_factor": 2.0, "rope_trained": 8},
        {"heads": 2, "kv_heads": 1, "head": 16},  # the same matrices, cut into other heads
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_keys_and_shapes_do_not_tell_the_logits_do(
    wrong: dict[str, Any], tmp_path: Path
) -> None:
    _theirs(SHAPES["llama"], tmp_path)
    ours = Decoder(replace(SHAPE, **wrong), VOCABULARY)
    load_into(ours, tmp_path)
    assert prove(ours, their_model(tmp_path), _texts()).largest > 1e-3


def test_nan_is_no_proof(tmp_path: Path) -> None:
    _theirs(SHAPE, tmp_path)
    ours = Decoder(SHAPE, VOCABULARY)
    load_into(ours, tmp_path)
    with torch.no_grad():
        ours.norm.weight[0] = float("nan")
    assert prove(ours, their_model(tmp_path), _texts()).largest == float("inf")


def test_every_name_has_one_there() -> None:
    model = Decoder(replace(SHAPE, qkv_bias=True, tied=False, depth=12), VOCABULARY)
    names = [name_there(name) for name, _ in model.named_parameters()]
    assert len(set(names)) == len(names)
    assert "model.layers.11.self_attn.q_proj.bias" in names
    assert name_there("layers.3.ffn.up.weight") == "model.layers.3.mlp.up_proj.weight"


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("more", [{}, {"qk_norm": True}, {"qkv_bias": True}], ids=str)
def test_mup_is_folded_into_the_weights(tied: bool, more: dict[str, Any]) -> None:
    scaled = Decoder(replace(SHAPE, tied=tied, base_width=16, base_depth=1, **more), VOCABULARY)
    initialize(scaled, 0)
    with torch.no_grad():
        for parameter in scaled.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    made = plain(scaled)
    assert made.shape == replace(SHAPE, tied=False, **more)
    tokens = torch.arange(24)[None]
    scope = Scope(torch.zeros_like(tokens))
    torch.testing.assert_close(made(tokens, scope), scaled(tokens, scope))


CONFIG = config_of(SHAPE, VOCABULARY, 64, 1, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "gpt2"}, "`model_type: gpt2`; what can be read: llama, qwen2, qwen3"),
        ({"hidden_act": "gelu"}, "`hidden_act: gelu`; the model here computes hidden_act: silu"),
        ({"attention_bias": True}, "`attention_bias: True`"),
        ({"sliding_window": 4096}, "`sliding_window: 4096`"),
        (
            {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}},
            "`rope_type: yarn`",
        ),
    ],
)
def test_what_a_decoder_does_not_compute_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        shape_of({**CONFIG, **change}, "x/config.json")
    assert str(error.value).startswith(f"x/config.json: {message}")


def test_a_config_of_before_transformers_5(tmp_path: Path) -> None:
    old = {key: value for key, value in CONFIG.items() if key != "rope_parameters"}
    scaling = {
        "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }  # fmt: skip
    found = shape_of({**old, "rope_theta": 500_000.0, "rope_scaling": scaling}, "x")
    assert found == replace(SHAPE, rope_base=500_000.0, rope_factor=32.0, rope_trained=8192)
    assert shape_of({**old, "rope_theta": 5e5, "rope_scaling": None}, "x").rope_factor == 1
    qwen = {**old, "model_type": "qwen2", "sliding_window": 9, "use_sliding_window": False}
    assert shape_of(qwen, "x").qkv_bias


def test_broken_folders_are_told(tmp_path: Path) -> None:
    ours = Decoder(SHAPE, VOCABULARY)
    with pytest.raises(ConfigError, match=r"config\.json: no such file"):
        shape_in(tmp_path)
    _theirs(SHAPE, tmp_path)
    with pytest.raises(ConfigError, match=r"embed_tokens.weight has 64 rows, the tokenizer .* 65"):
        load_into(Decoder(SHAPE, 65), tmp_path)
    with pytest.raises(ConfigError, match=r"down_proj.weight is \[32, 48\], its .* \[32, 40\]"):
        load_into(Decoder(replace(SHAPE, ffn=40), VOCABULARY), tmp_path)
    with pytest.raises(ConfigError, match=r"lm_head.weight is in no safetensors file"):
        load_into(Decoder(replace(SHAPE, tied=False), VOCABULARY), tmp_path)
    deep = Decoder(replace(SHAPE, depth=1), VOCABULARY)
    assert left_over(deep, tmp_path)[0] == "model.layers.1.input_layernorm.weight"
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ConfigError, match=r"not readable: .*download it again"):
        load_into(ours, tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"config\.json: not JSON"):
        shape_in(tmp_path)
    assert json.loads(json.dumps(CONFIG)) == CONFIG


def test_a_stage_of_a_pipeline_reads_its_own(tmp_path: Path) -> None:
    _theirs(SHAPE, tmp_path)
    whole, stage = Decoder(SHAPE, VOCABULARY), Decoder(SHAPE, VOCABULARY, layers=range(1, 2))
    initialize(stage, 0)
    for model in (whole, stage):
        load_into(model, tmp_path)
    expected = dict(whole.named_parameters())
    for name, parameter in stage.named_parameters():
        assert torch.equal(parameter, expected[name])


@pytest.mark.parametrize(("key", "value"), [("encoder_depth", 2), ("window", 16)])
def test_a_shape_that_transformers_has_not_is_refused(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"key `model.{key}`: {value}: .* cannot be exported"):
        config_of(replace(SHAPE, **{key: value}), VOCABULARY, 64, None, None)
