"""What a model learns from a window: inputs, labels, and what may look at what.

An example is a function of (window, its number, seed): a resumed run, and any layout, makes the
same ones. `causal`, the next token, is the default and changes nothing of a window.

Shapes: B windows, S = T + 1 tokens of a whole window, T inputs, E tokens of an encoder.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.attention import Scope

IGNORED = -100  # a label that no loss counts


@dataclass(frozen=True)
class Example:
    """A batch of examples. Labels are of the same place as their input: nothing is shifted."""

    inputs_BT: Tensor  # int64
    labels_BT: Tensor  # int64, IGNORED where no target counts
    scope: Scope
    encoder_tokens_BE: Tensor | None = None  # int64; of an encoder-decoder
    encoder_scope: Scope | None = None

    def to(self, device: torch.device) -> Example:
        encoder = self.encoder_tokens_BE
        return Example(
            self.inputs_BT.to(device),
            self.labels_BT.to(device),
            self.scope.to(device),
            None if encoder is None else encoder.to(device),
            None if self.encoder_scope is None else self.encoder_scope.to(device),
        )

    def num_targets(self) -> Tensor:
        return (self.labels_BT != IGNORED).sum()


@dataclass(frozen=True)
class Objective:
    """What is asked of a model; `kind` names the function that makes its examples."""

    kind: str = "causal"


CAUSAL = Objective()


def make_example(
    objective: Objective, tokens_BS: Tensor, documents_BS: Tensor, position: int, seed: int
) -> Example:
    """The examples of windows `position`, `position` + 1 ... of a run.

    The first token of a document is never a target: it would be predicted across a border.
    """
    inputs_BT = tokens_BS[:, :-1]
    inside_BT = documents_BS[:, 1:] == documents_BS[:, :-1]
    labels_BT = tokens_BS[:, 1:].masked_fill(~inside_BT, IGNORED)
    return Example(inputs_BT, labels_BT, Scope(documents_BS[:, :-1]))
