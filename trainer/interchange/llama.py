"""A Decoder as transformers knows it, and back: names of weights, and config.json.

    Llama    what a Decoder is
    Qwen2    with biases of query, key and value
    Qwen3    with norms of query and key

The rotary angles have the same layout on both sides (halves, not pairs), so no weight is permuted.
What a config says that a Decoder does not compute is refused by name: a converted model can pass
every check of keys and shapes with logits that are 38 % off (open-instruct #1839). No torch here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipeline.config import ConfigError
from trainer.shapes import Shape

OUTSIDE = {
    "embedding.weight": "model.embed_tokens.weight",
    "norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
INSIDE = {  # of a layer
    "attention_norm": "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "attention.query_norm": "self_attn.q_norm",
    "attention.key_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn.gate": "mlp.gate_proj",
    "ffn.up": "mlp.up_proj",
    "ffn.output": "mlp.down_proj",
}
# What a config may say and a Decoder then computes; anything else is refused.
COMPUTED: dict[str, tuple[Any, ...]] = {
    "hidden_act": ("silu",),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "use_sliding_window": (False,),
    "sliding_window": (None,),
    "pretraining_tp": (1,),
}


def name_there(name: str) -> str:
    """`layers.3.ffn.up.weight` -> `model.layers.3.mlp.up_proj.weight`."""
    if name in OUTSIDE:
        return OUTSIDE[name]
    _, number, rest = name.split(".", 2)
    part, kind = rest.rsplit(".", 1)
    return f"model.layers.{number}.{INSIDE[part]}.{kind}"


def family(shape: Shape) -> str:
    """The `model_type` of transformers that computes what a Decoder of this shape does."""
    for key, value in (("encoder_depth", shape.encoder_depth), ("window", shape.window)):
        if value:
            raise ConfigError(
                f"key `model.{key}`: {value}: no Llama or Qwen of transformers has it; the model "
                "is read by assay alone, it cannot be exported"
            )
    if shape.qk_norm and shape.qkv_bias:
        raise ConfigError(
            "`model`: no model of transformers has both qk_norm and qkv_bias; drop one to export"
        )
    return "qwen3" if shape.qk_norm else "qwen2" if shape.qkv_bias else "llama"


def config_of(
    shape: Shape, vocab_size: int, length: int, bos_id: int | None, eos_id: int | None
) -> dict[str, Any]:
    """config.json of a Decoder trained on windows of `length` tokens."""
    kind = family(shape)
    config = {
        "model_type": kind,
        "vocab_size": vocab_size,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.depth,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_width,
        "intermediate_size": shape.ffn,
        "hidden_act": "silu",
        "rms_norm_eps": shape.epsilon,
        "rope_parameters": _rope_of(shape),
        "max_position_embeddings": length,
        "tie_word_embeddings": shape.tied,
        "bos_token_id": bos_id,
        "eos_token_id": eos_id,
        "pad_token_id": None,
        "attention_dropout": 0.0,
    }
    return config | ({} if kind == "qwen2" else {"attention_bias": False})


def _rope_of(shape: Shape) -> dict[str, Any]:
    if shape.rope_factor == 1:
        return {"rope_type": "default", "rope_theta": shape.rope_base}
    return {
        "rope_type": "llama3",
        "rope_theta": shape.rope_base,
        "factor": shape.rope_factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": shape.rope_trained,
    }


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a folder.

    Raises:
        ConfigError: no such folder or file, or not JSON.
    """
    path = folder / "config.json"
    try:
        config: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file; expected a folder as transformers saves it, with config.json, "
            "safetensors and tokenizer.json"
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"{path}: not JSON: {error}") from None
    return config


def shape_in(folder: Path) -> Shape:
    """The shape of the model in a folder; see shape_of for what is refused."""
    return shape_of(read_config(folder), str(folder / "config.json"))


def shape_of(config: dict[str, Any], where: str) -> Shape:
    """The shape of the Decoder that a config.json describes.

    Raises:
        ConfigError: another family, or a value that a Decoder does not compute.
    """
    kind = config.get("model_type")
    if kind not in ("llama", "qwen2", "qwen3"):
        raise ConfigError(f"{where}: `model_type: {kind}`; what can be read: llama, qwen2, qwen3")
    for key, allowed in COMPUTED.items():
        if key in config and config[key] not in allowed and not _unused(config, key):
            raise ConfigError(
                f"{where}: `{key}: {config[key]}`; the model here computes {key}: {allowed[0]} only"
            )
    rope = config.get("rope_parameters") or {
        "rope_theta": config.get("rope_theta", 10_000.0),
        **(config.get("rope_scaling") or {}),
    }
    heads, width = config["num_attention_heads"], config["hidden_size"]
    return Shape(
        width=width,
        depth=config["num_hidden_layers"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        ffn=config["intermediate_size"],
        head=_head(config),
        tied=bool(config.get("tie_word_embeddings", False)),
        rope_base=float(rope["rope_theta"]),
        **_stretch(rope, where),
        epsilon=float(config.get("rms_norm_eps", 1e-6)),
        qk_norm=kind == "qwen3",
        qkv_bias=kind == "qwen2",
    )


def _head(config: dict[str, Any]) -> int | None:
    """Width of a head where it is not width / heads."""
    given = config.get("head_dim")
    usual = config["hidden_size"] / config["num_attention_heads"]
    return None if given in (None, usual) else int(given)


def _stretch(rope: dict[str, Any], where: str) -> dict[str, Any]:
    """rope_factor and rope_trained of a shape."""
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return {}
    ramp = (rope.get("low_freq_factor"), rope.get("high_freq_factor"))
    if kind != "llama3" or ramp != (1.0, 4.0):
        raise ConfigError(
            f"{where}: `rope_type: {kind}`, ramp {ramp}; rotary angles that are computed here: "
            "default, and llama3 with low_freq_factor 1 and high_freq_factor 4"
        )
    trained = int(rope["original_max_position_embeddings"])
    return {"rope_factor": float(rope["factor"]), "rope_trained": trained}


def _unused(config: dict[str, Any], key: str) -> bool:
    """Qwen2 names the width of a window that `use_sliding_window: false` switches off."""
    return key == "sliding_window" and config.get("use_sliding_window") is False
