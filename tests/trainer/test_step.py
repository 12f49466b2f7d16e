"""The loss of a global batch: one number, whatever the micro-batches and ranks."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import torch

from mixtures.batch import Batch
from trainer.losses import IGNORED
from trainer.model import Decoder, initialize, token_losses
from trainer.objectives import CAUSAL, make_example
from trainer.parallel.layout import Layout
from trainer.parallel.world import World, share
from trainer.settings import RunSettings
from trainer.shapes import Shape
from trainer.step import backward, micro_batches

ONE = World(0, 1, torch.device("cpu"), None)
SHAPE = Shape(width=16, depth=1, heads=2, kv_heads=1, ffn=16)


def _run(**changes: object) -> RunSettings:
    base = {"mixture": "m.yaml", "model": asdict(SHAPE), "tokens": "1k"}
    return RunSettings.model_validate({**base, **changes})


def _model() -> Decoder:
    model = Decoder(SHAPE, 20)
    initialize(model, 0)
    return model


def _batch() -> Batch:
    """Four windows: 1, 9, 0 and 4 valid targets."""
    tokens = np.random.default_rng(0).integers(0, 20, (4, 10))
    documents = np.array(
        [[0, 0, *range(1, 9)], [0] * 10, range(10), [0, 0, 0, 1, 1, 1, 2, 3, 4, 5]], np.int32
    )
    return Batch(tokens, lambda: (documents, ()))


def _gradients(model: Decoder) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("micro_batch", [1, 3, 4, 100])
def test_loss_is_sum_over_targets_by_number_of_targets(micro_batch: int) -> None:
    """torchtitan #2206: a mean of means gives the window with one target the weight of nine."""
    batch, model, reference = _batch(), _model(), _model()
    loss = backward(model, batch, 4, _run(micro_batch=micro_batch), ONE, 0).nats
    tokens, documents = torch.from_numpy(batch.tokens), torch.from_numpy(batch.documents)
    example = make_example(CAUSAL, tokens, documents, 0, 0)
    assert (example.labels_BT != IGNORED).sum(1).tolist() == [1, 9, 0, 4]
    expected = token_losses(reference, example).sum() / 14
    expected.backward()
    assert loss == pytest.approx(expected.item(), abs=1e-6)
    torch.testing.assert_close(_gradients(model), _gradients(reference), atol=1e-6, rtol=1e-5)


def test_ranks_with_fewer_windows_get_blank_ones() -> None:
    batch = _batch()
    chunks = list(micro_batches(batch, 6, _run(micro_batch=4), torch.device("cpu"), 0))
    assert [len(example.inputs_BT) for example in chunks] == [4, 2]
    assert [int(example.num_targets()) for example in chunks] == [14, 0]
    blank, whole = _model(), _model()
    loss = backward(blank, batch, 6, _run(), ONE, 0).nats
    assert loss == pytest.approx(backward(whole, batch, 4, _run(), ONE, 0).nats, abs=1e-6)
    torch.testing.assert_close(_gradients(blank), _gradients(whole), atol=1e-6, rtol=1e-5)


def test_a_batch_without_targets_has_loss_0_and_no_gradient() -> None:
    model = _model()
    lonely = Batch(np.zeros((1, 10), np.int64), lambda: (np.arange(10)[None], ()))
    assert backward(model, lonely, 1, _run(), ONE, 0) == (0.0, 0.0)
    assert _gradients(model).abs().max().item() == 0.0


@pytest.mark.parametrize(
    ("windows", "ranks", "expected"),
    [
        (4, 1, [(0, 4)]),
        (5, 2, [(0, 2), (2, 3)]),
        (2, 4, [(0, 0), (0, 1), (1, 0), (1, 1)]),
    ],
)
def test_each_rank_takes_its_slice_by_position(
    windows: int, ranks: int, expected: list[tuple[int, int]]
) -> None:
    cpu, layout = torch.device("cpu"), Layout(fsdp=ranks)
    shares = [share(windows, World(r, ranks, cpu, None, layout)) for r in range(ranks)]
    assert [(first, count) for first, count, _ in shares] == expected
    assert {most for _, _, most in shares} == {max(count for _, count in expected)}


def test_bf16_is_near_fp32() -> None:
    losses = [backward(_model(), _batch(), 4, _run(precision=p), ONE, 0) for p in ("fp32", "bf16")]
    assert losses[0] == pytest.approx(losses[1], abs=0.02)
    assert losses[0] != losses[1]
