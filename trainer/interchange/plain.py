"""A decoder without muP's factors that computes the same: they are multiplied into its weights."""

from __future__ import annotations

from dataclasses import replace

import torch

from trainer import mup
from trainer.model import Decoder
from trainer.shapes import Shape


def plain_shape(shape: Shape) -> Shape:
    """Untied where the output layer has a factor of its own."""
    tied = shape.tied and mup.output_scale(shape) == 1
    return replace(shape, base_width=None, base_depth=None, tied=tied)


@torch.no_grad()
def plain(model: Decoder) -> Decoder:
    """A copy, on the CPU, fp32."""
    shape = model.shape
    made = Decoder(plain_shape(shape), model.embedding.num_embeddings)
    given = dict(model.named_parameters())
    branch, output = mup.branch_scale(shape), mup.output_scale(shape)
    for name, parameter in made.named_parameters():
        source = given["embedding.weight"] if name not in given else given[name]
        factor = 1.0
        if name == "output.weight":
            factor = output
        elif name.endswith(".output.weight"):
            factor = branch
        elif ".query_norm." in name or (".query." in name and not shape.qk_norm):
            factor = mup.attention_scale(shape)
        parameter.copy_(source * factor)
    return made
