"""The decoder: no leak between documents, positions, parameter counts, initial weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from trainer.attention import Scope, positions
from trainer.losses import IGNORED
from trainer.model import Decoder, initialize, num_parameters, token_losses
from trainer.objectives import CAUSAL, make_example
from trainer.shapes import PRESETS, Shape

TINY = Shape(width=16, depth=2, heads=4, kv_heads=2, ffn=32)


def _model(shape: Shape = TINY, vocabulary: int = 50, seed: int = 0) -> Decoder:
    model = Decoder(shape, vocabulary)
    initialize(model, seed)
    return model


def test_positions_restart_at_each_document() -> None:
    documents = torch.tensor([[0, 0, 0, 1, 1, 2], [7, 7, 7, 7, 7, 7], [0, 1, 2, 3, 4, 4]])
    assert positions(Scope(documents)).tolist() == [
        [0, 1, 2, 0, 1, 0],
        [0, 1, 2, 3, 4, 5],
        [0, 0, 0, 0, 0, 1],
    ]


def test_a_target_of_another_document_does_not_count() -> None:
    tokens = torch.tensor([[5, 6, 7, 8, 9]])
    example = make_example(CAUSAL, tokens, torch.tensor([[0, 0, 1, 1, 2]]), 0, 0)
    assert example.inputs_BT.tolist() == [[5, 6, 7, 8]]
    assert example.labels_BT.tolist() == [[6, IGNORED, 8, IGNORED]]
    assert example.num_targets().item() == 2


def test_documents_do_not_see_each_other() -> None:
    """Megatron-LM #2357: the mask was ignored silently. The difference is exactly 0."""
    model = _model()
    documents = torch.tensor([[0] * 9 + [1] * 7])
    tokens = torch.randint(0, 50, (1, 16), generator=torch.Generator().manual_seed(1))
    other = tokens.clone()
    other[0, :9] = (tokens[0, :9] + 1) % 50
    scope, whole = Scope(documents), Scope(documents * 0)
    difference = (model(tokens, scope) - model(other, scope)).abs()
    assert difference[0, 9:].max().item() == 0.0
    assert difference[0, :9].max().item() > 1e-3
    moved = (model(tokens, whole) - model(other, whole)).abs()
    assert moved[0, 9:].max().item() > 1e-3  # without borders they do


def test_a_document_alone_has_the_same_logits() -> None:
    """Mask and positions together (nanoVLM #204): a document cannot tell where it stands."""
    model = _model()
    tokens = torch.randint(0, 50, (1, 16), generator=torch.Generator().manual_seed(2))
    packed = model(tokens, Scope(torch.tensor([[0] * 9 + [1] * 7])))[0, 9:]
    alone = model(tokens[:, 9:], Scope(torch.zeros(1, 7, dtype=torch.long)))[0]
    torch.testing.assert_close(packed, alone, atol=2e-6, rtol=0)


def test_copies_of_one_random_document_are_not_copied() -> None:
    """profam #495: with a leak, the second copy is predicted from the first."""
    model = _model()
    copy = torch.randint(0, 50, (8,), generator=torch.Generator().manual_seed(3))
    tokens = torch.cat([copy, copy, copy, copy[:1]])[None]
    documents = torch.tensor([[0] * 8 + [1] * 8 + [2] * 8 + [3]])
    losses = token_losses(model, make_example(CAUSAL, tokens, documents, 0, 0))[0]
    torch.testing.assert_close(losses[0:7], losses[8:15], atol=2e-6, rtol=0)
    torch.testing.assert_close(losses[0:7], losses[16:23], atol=2e-6, rtol=0)
    assert losses[[7, 15, 23]].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("tied", [True, False])
def test_parameter_counts(tied: bool) -> None:
    shape = Shape(width=16, depth=3, heads=4, kv_heads=2, ffn=32, tied=tied)
    attention = 16 * 16 * 2 + 16 * 8 * 2
    layer = attention + 3 * 16 * 32 + 2 * 16
    assert num_parameters(Decoder(shape, 50)) == 50 * 16 * (1 if tied else 2) + 3 * layer + 16


@pytest.mark.parametrize(
    ("name", "vocabulary", "millions"),
    [
        ("0.4M", 4096, 0.36),
        ("1M", 4096, 0.98),
        ("2M", 4096, 2.0),
        ("4M", 4096, 3.87),
        ("25M", 4096, 24.6),
        ("200M", 32768, 211),
        ("650M", 32768, 655),
        ("3B", 32768, 2930),
        ("10M", 4096, 9.9),
        ("100M", 32768, 101),
        ("400M", 32768, 411),
        ("1B", 32768, 1040),
        ("8B", 32768, 7250),
    ],
)
def test_presets_have_the_size_of_their_name(name: str, vocabulary: int, millions: float) -> None:
    with torch.device("meta"):
        model = Decoder(PRESETS[name], vocabulary)
    assert num_parameters(model) / 1e6 == pytest.approx(millions, rel=0.03)


def test_initial_weights_depend_on_seed_and_name_only() -> None:
    first, deeper = _model(), _model(replace(TINY, depth=5))
    name = "layers.1.attention.query.weight"
    assert torch.equal(first.get_parameter(name), deeper.get_parameter(name))
    assert not torch.equal(first.get_parameter(name), _model(seed=1).get_parameter(name))
    assert first.norm.weight.tolist() == [1.0] * 16
    wide = _model(Shape(width=256, depth=2, heads=4, kv_heads=2, ffn=512))
    deviations = {name: p.std().item() for name, p in wide.named_parameters() if p.ndim == 2}
    assert deviations["embedding.weight"] == pytest.approx(0.02, rel=0.03)
    assert deviations["layers.0.ffn.up.weight"] == pytest.approx(1 / 16, rel=0.03)
    assert deviations["layers.0.ffn.output.weight"] == pytest.approx(512**-0.5 / 2, rel=0.03)


def test_options_have_their_parameters_and_change_the_logits() -> None:
    tokens = torch.randint(0, 50, (1, 16), generator=torch.Generator().manual_seed(5))
    scope = Scope(torch.zeros(1, 16, dtype=torch.int32))
    plain = _model()(tokens, scope)
    normed = _model(replace(TINY, qk_norm=True))
    names = dict(normed.named_parameters())
    assert names["layers.1.attention.key_norm.weight"].shape == (4,)
    narrow = _model(replace(TINY, window=3))
    for other in (normed, narrow):
        assert (other(tokens, scope) - plain).abs().max() > 1e-3
    torch.testing.assert_close(narrow(tokens, scope)[:, :3], plain[:, :3], atol=1e-6, rtol=0)


def test_stages_of_a_pipeline_are_the_model() -> None:
    """Each with the names, and so the initial weights, that its parts have in the whole."""
    for tied in (True, False):
        shape = replace(TINY, depth=3, tied=tied)
        whole = _model(shape)
        stages = [Decoder(shape, 50, range(1)), Decoder(shape, 50, range(1, 3))]
        names = [{name for name, _ in stage.named_parameters()} for stage in stages]
        assert names[0] | names[1] == {name for name, _ in whole.named_parameters()}
        assert names[0] & names[1] == ({"embedding.weight"} if tied else set())
        x = tokens = torch.arange(16)[None]
        scope = Scope(torch.tensor([[0] * 9 + [1] * 7]))
        for stage in stages:
            initialize(stage, 0)
            x = stage(x, scope)
        assert torch.equal(x, whole(tokens, scope))
