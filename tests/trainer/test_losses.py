"""The output layer in chunks against plain autograd, in fp64."""

from __future__ import annotations

import pytest
import torch

from trainer import losses
from trainer.losses import IGNORED, losses_of, output_losses

VOCABULARY = 40


def _inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 9, 6, generator=generator, dtype=torch.float64)
    weight = torch.randn(VOCABULARY, 6, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, VOCABULARY, (2, 9), generator=generator)
    labels[0, 3:7] = IGNORED
    return x, weight, labels


@pytest.mark.parametrize("z_weight", [0.0, 0.3])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("chunk", [VOCABULARY, 5 * VOCABULARY, 1 << 22])
def test_losses_and_gradients(
    z_weight: float, even: bool, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where targets count unlike, so that the gradient of the forward pass is not the one."""
    monkeypatch.setattr(losses, "CHUNK", chunk)
    x, weight, labels = _inputs()
    count = torch.full((2, 9), 0.25) if even else torch.arange(18.0).view(2, 9)
    results = []
    for chunked in (True, False):
        mine = x.clone().requires_grad_(), weight.clone().requires_grad_()
        if chunked:
            found = output_losses(*mine, labels, z_weight)
        else:
            found = losses_of(mine[0] @ mine[1].T, labels, z_weight)
        assert found.shape == ((2, 2, 9) if z_weight else (2, 9))
        (found * count).sum().backward()
        results.append((found, mine[0].grad, mine[1].grad))
    for ours, plain in zip(*results, strict=True):
        torch.testing.assert_close(ours, plain, atol=1e-12, rtol=1e-12)
    assert results[0][0][..., 0, 3:7].abs().max().item() == 0.0


def test_z_loss_is_the_square_of_the_logarithm_of_the_sum() -> None:
    x, weight, labels = _inputs()
    nats, added = output_losses(x, weight, labels, 1e-4)
    torch.testing.assert_close(nats, output_losses(x, weight, labels, 0.0))
    expected = 1e-4 * (x @ weight.T).exp().sum(-1).log() ** 2
    torch.testing.assert_close(added, expected.masked_fill(labels == IGNORED, 0.0))


def test_what_is_all_but_impossible_has_a_finite_loss() -> None:
    """Its probability is 0 in fp32; the nats are 400 all the same."""
    x, weight = torch.tensor([[[400.0]]], requires_grad=True), torch.tensor([[1.0], [0.0]])
    found = output_losses(x, weight, torch.tensor([[1]]), 0.0)
    assert found.tolist() == [[400.0]]
    found.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[[1.0]]]


def test_nothing_that_counts() -> None:
    x, weight, labels = _inputs()
    x.requires_grad_()
    found = output_losses(x, weight, torch.full_like(labels, IGNORED), 0.1)
    found.sum().backward()
    assert x.grad is not None
    assert (found.abs().max().item(), x.grad.abs().max().item()) == (0.0, 0.0)
