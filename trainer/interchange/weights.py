"""Weights in a folder of transformers: safetensors, one file or several with an index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.config import ConfigError
from trainer.interchange.llama import name_there

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MISSING = "`pip install 'assay[hf]'` brings transformers and safetensors, which this needs"


def load_into(model: nn.Module, folder: Path) -> None:
    """Fill the parameters of a model, or of a stage of one, from a folder, in their own type.

    Rows of a vocabulary beyond the model's own (padding) are left out.

    Raises:
        ConfigError: a weight is missing, of another shape, or left over.
    """
    wanted = {name_there(name): parameter for name, parameter in model.named_parameters()}
    found = set()
    with torch.no_grad():
        for name, tensor in _tensors(folder, set(wanted)):
            parameter = wanted[name]
            if "embed_tokens" in name or "lm_head" in name:
                if len(tensor) < len(parameter):
                    raise ConfigError(
                        f"{folder}: {name} has {len(tensor)} rows, the tokenizer of the mixture "
                        f"{len(parameter)}; prepare the corpus with the tokenizer of this model"
                    )
                tensor = tensor[: len(parameter)]
            if tensor.shape != parameter.shape:
                raise ConfigError(
                    f"{folder}: {name} is {list(tensor.shape)}, its config.json makes it "
                    f"{list(parameter.shape)}; the folder is of two models"
                )
            parameter.copy_(tensor)
            found.add(name)
    if missing := sorted(wanted.keys() - found):
        raise ConfigError(f"{folder}: {missing[0]} is in no safetensors file; download it again")


def left_over(model: nn.Module, folder: Path) -> list[str]:
    """Names of weights that the files hold and the model does not; lm_head of a tied one counts as
    the model's."""
    known = {name_there(name) for name, _ in model.named_parameters()}
    tied = {"lm_head.weight"} if "lm_head.weight" not in known else set()
    return sorted(set(_places(folder)) - known - tied)


def _tensors(folder: Path, names: set[str]) -> Iterator[tuple[str, Tensor]]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise ConfigError(f"{folder}: {MISSING}") from None
    places = _places(folder)
    with ExitStack() as opened:
        files: dict[Path, Any] = {}
        for name in sorted(names & places.keys()):
            path = places[name]
            try:
                if path not in files:
                    files[path] = opened.enter_context(safe_open(str(path), framework="pt"))
                tensor = files[path].get_tensor(name)
            except (SafetensorError, OSError) as error:
                raise ConfigError(f"{path}: not readable: {error}; download it again") from None
            yield name, tensor


def _places(folder: Path) -> dict[str, Path]:
    """The file of each weight."""
    if (folder / INDEX).exists():
        listed = json.loads((folder / INDEX).read_text("utf-8"))["weight_map"]
        return {name: folder / file for name, file in listed.items()}
    path = folder / SINGLE
    if not path.exists():
        raise ConfigError(f"{folder}: neither {SINGLE} nor {INDEX}; download the weights")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            return dict.fromkeys(file.keys(), path)
    except SafetensorError as error:
        raise ConfigError(f"{path}: not readable: {error}; download it again") from None
