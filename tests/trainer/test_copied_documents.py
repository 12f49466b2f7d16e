"""Windows of copies: what a model can learn from the copy before, and may not.

Each window is one random document twice, so the second one can be foretold by copying and by
nothing else. profam #495: with a leak of the mask or of positions, training finds it. What
test_model.py says of single logits is here said of a model that had every reason to copy.
"""

from __future__ import annotations

import pytest
import torch

from trainer.model import Decoder, initialize, token_losses
from trainer.objectives import CAUSAL, Example, make_example
from trainer.shapes import Shape

SHAPE = Shape(width=32, depth=1, heads=2, kv_heads=1, ffn=32)
VOCABULARY, LENGTH = 16, 8
WINDOWS, STEPS, ASKED = 32, 150, 512


def _example(windows: int, seed: int, borders: bool) -> Example:
    random = torch.Generator().manual_seed(seed)
    document = torch.randint(0, VOCABULARY, (windows, LENGTH), generator=random)
    documents = torch.arange(2).repeat_interleave(LENGTH).expand(windows, -1)
    scope = documents if borders else torch.zeros_like(documents)
    return make_example(CAUSAL, torch.cat([document, document], 1), scope, 0, 0)


def _accuracy_of_copies(borders: bool) -> float:
    """Share of the tokens of second copies, but their first ones, that a trained model expects."""
    model = Decoder(SHAPE, VOCABULARY)
    initialize(model, 0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
    for step in range(STEPS):
        example = _example(WINDOWS, step, borders)
        optimizer.zero_grad()
        torch.autograd.backward(token_losses(model, example).sum() / example.num_targets())
        optimizer.step()
    example = _example(ASKED, STEPS, borders)
    with torch.no_grad():
        expected = model(example.inputs_BT, example.scope).argmax(-1)
    right = expected[:, LENGTH:] == example.labels_BT[:, LENGTH:]
    return right.float().mean().item()


def test_a_copy_is_foretold_where_no_border_hides_it() -> None:
    """Else the test below would show nothing."""
    assert _accuracy_of_copies(borders=False) > 0.9


def test_a_copy_behind_a_border_stays_at_chance() -> None:
    """Within four standard deviations of ASKED x (LENGTH - 1) guesses among VOCABULARY."""
    chance, guesses = 1 / VOCABULARY, ASKED * (LENGTH - 1)
    deviation = (chance * (1 - chance) / guesses) ** 0.5
    assert _accuracy_of_copies(borders=True) == pytest.approx(chance, abs=4 * deviation)
