"""The proof that two models are one: their logits on real text.

Names, shapes and keys can all agree while the logits are 38 % off (open-instruct #1839): another
base of the rotary angles, another epsilon, heads in another order. So what is exported is read back
from disk by transformers, and what is imported is run by both, on the same token ids, in fp32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from pipeline.config import ConfigError
from trainer.attention import Scope
from trainer.interchange.weights import MISSING


@dataclass(frozen=True)
class Proof:
    largest: float  # difference of two logits, of the same token and place
    mean: float
    spread: float  # standard deviation of the logits, to compare these with
    same_choice: float  # share of places at which both prefer the same token
    num_tokens: int
    num_texts: int

    def told(self) -> str:
        return (
            f"logits on {self.num_tokens:,} tokens of {self.num_texts} texts: largest difference "
            f"{self.largest:.2e}, mean {self.mean:.2e}, of a spread of {self.spread:.2f}; the same "
            f"first choice at {self.same_choice:.2%} of places"
        )


@torch.no_grad()
def prove(ours: nn.Module, theirs: Any, texts: Sequence[np.ndarray]) -> Proof:
    """Compare a Decoder and a causal model of transformers, both fp32 and on the CPU.

    Args:
        texts: token ids, int64, each of at least one token.
    """
    largest, total, same, places = 0.0, 0.0, 0, 0
    moments = torch.zeros(2, dtype=torch.float64)
    count = 0
    for ids in texts:
        tokens_BT = torch.from_numpy(ids.astype(np.int64))[None]
        a_TV = ours(tokens_BT, Scope(torch.zeros_like(tokens_BT, dtype=torch.int32)))[0].float()
        b_TV = theirs(input_ids=tokens_BT).logits[0].float()[:, : a_TV.shape[1]]
        off_TV = (a_TV - b_TV).abs()
        # NaN is greater than no tolerance: it has to show
        largest = max(largest, float(torch.nan_to_num(off_TV, nan=float("inf")).max()))
        total += float(off_TV.double().sum())
        same += int((a_TV.argmax(-1) == b_TV.argmax(-1)).sum())
        places += len(ids)
        wide_TV = a_TV.double()
        moments += torch.stack([wide_TV.sum(), (wide_TV**2).sum()])
        count += a_TV.numel()
    mean, square = (moments / max(1, count)).tolist()
    spread = max(0.0, square - mean**2) ** 0.5
    return Proof(largest, total / max(1, count), spread, same / max(1, places), places, len(texts))


def their_model(folder: Path) -> Any:
    """The model of a folder as transformers reads it, fp32, on the CPU.

    Raises:
        ConfigError: transformers is not installed, or refuses the folder.
    """
    try:
        from transformers import AutoModelForCausalLM
    except ImportError:
        raise ConfigError(f"{folder}: {MISSING}") from None
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            str(folder), dtype=torch.float32, local_files_only=True, attn_implementation="sdpa"
        )
    except (ValueError, OSError) as error:
        raise ConfigError(f"{folder}: transformers cannot read it: {error}") from None
    return model.eval()
