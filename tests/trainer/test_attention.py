"""Masks: each kind by hand, the rule of the fast path against the dense reference, no leak."""

from __future__ import annotations

import os

import pytest
import torch
from torch.nn.attention.flex_attention import create_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from trainer import causal
from trainer.attention import (
    Scope,
    attend,
    cross_rule,
    dense_mask,
    flex_mask,
    make_cross_mask,
    make_mask,
    rule_of,
)
from trainer.encoder_decoder import EncoderDecoder
from trainer.model import Decoder, initialize
from trainer.shapes import Shape

TINY = Shape(width=16, depth=2, heads=4, kv_heads=2, ffn=32)
DOCUMENTS = torch.tensor([[0, 0, 0, 1, 1, 1]], dtype=torch.int32)
PREFIX = torch.tensor([[1, 1, 0, 1, 0, 0]]).bool()
KINDS = {
    "causal": Scope(DOCUMENTS * 0),
    "document": Scope(DOCUMENTS),
    "prefix": Scope(DOCUMENTS * 0, PREFIX),
    "prefix in documents": Scope(DOCUMENTS, PREFIX),
    "window": Scope(DOCUMENTS * 0, window=2),
    "window in documents": Scope(DOCUMENTS, window=2),
    "encoder": Scope(DOCUMENTS, PREFIX | True),
}
ALLOWED = {
    "causal": "x..... xx.... xxx... xxxx.. xxxxx. xxxxxx",
    "document": "x..... xx.... xxx... ...x.. ...xx. ...xxx",
    "prefix": "xx.x.. xx.x.. xxxx.. xxxx.. xxxxx. xxxxxx",
    "prefix in documents": "xx.... xx.... xxx... ...x.. ...xx. ...xxx",
    "window": "x..... xx.... .xx... ..xx.. ...xx. ....xx",
    "window in documents": "x..... xx.... .xx... ...x.. ...xx. ....xx",
    "encoder": "xxx... xxx... xxx... ...xxx ...xxx ...xxx",
}


@pytest.mark.parametrize("kind", KINDS)
def test_masks_by_hand_and_the_rule_of_the_fast_path(kind: str) -> None:
    scope = KINDS[kind]
    mask = dense_mask(scope)
    text = [["x" if seen else "." for seen in row] for row in mask[0, 0].tolist()]
    assert " ".join(map("".join, text)) == ALLOWED[kind]
    assert torch.equal(create_mask(rule_of(scope), 1, 1, 6, 6, device="cpu"), mask)
    chosen = make_mask(scope)
    assert chosen is None if kind == "causal" else torch.equal(chosen, mask)


def test_the_mask_of_a_decoder_on_an_encoder() -> None:
    """By document; the third one is empty in the encoder, and the last place is filling."""
    scope = Scope(torch.tensor([[0, 0, 1, 2, -1]]))
    encoder = Scope(torch.tensor([[0, 1, 1, -2]]))
    mask = make_cross_mask(scope, encoder)
    assert mask[0, 0].int().tolist() == [[1, 0, 0, 0]] * 2 + [[0, 1, 1, 0]] + [[0, 0, 0, 0]] * 2
    assert torch.equal(create_mask(cross_rule(scope, encoder), 1, 1, 5, 4, device="cpu"), mask)


def _qkv(length: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(4)
    q = torch.randn(2, 4, length, 16, generator=generator)
    k, v = (torch.randn(2, 2, length, 16, generator=generator) for _ in range(2))
    return q, k, v


def _scopes(length: int) -> dict[str, Scope]:
    generator = torch.Generator().manual_seed(4)
    documents = torch.randint(0, 2, (2, length), generator=generator).cumsum(1)
    prefix = torch.randint(0, 2, (2, length), generator=generator).bool()
    return {
        "document": Scope(documents // 5),
        "prefix": Scope(documents // 5, prefix),
        "window": Scope(documents // 5, window=7),
    }


def test_what_may_look_at_nothing_gets_zeros() -> None:
    q, k, v = (tensor.requires_grad_() for tensor in _qkv(8))
    mask = torch.ones(2, 1, 8, 8).bool()
    mask[:, :, 3] = False
    output = attend(q, k, v, mask)
    assert output[:, :, 3].abs().max().item() == 0.0
    output.sum().backward()
    assert all(bool(t.grad.isfinite().all()) for t in (q, k, v) if t.grad is not None)


def test_one_document_is_attended_without_a_mask() -> None:
    q, k, v = _qkv(48)
    scope = Scope(torch.full((2, 48), 3))
    assert make_mask(scope) is None
    fast = attend(q, k, v, make_mask(scope))
    torch.testing.assert_close(fast, attend(q, k, v, dense_mask(scope)), atol=1e-6, rtol=0)


@pytest.mark.parametrize("length", [1, causal.STRETCH - 1, causal.STRETCH, 150])
def test_short_windows_are_attended_as_torch_does_with_gradients(length: int) -> None:
    """In fp64, for lengths within a stretch, on its border and over several."""
    results = []
    for function in (causal.causal_attention, _causal_of_torch):
        q, k, v = (tensor[:, :2].double().requires_grad_() for tensor in _qkv(length))
        output = function(q, k, v)
        results.append([output, *torch.autograd.grad(output.sin().sum(), (q, k, v))])
    for ours, torchs in zip(*results, strict=True):
        torch.testing.assert_close(ours, torchs, atol=1e-13, rtol=0)


def _causal_of_torch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def test_long_windows_and_short_numbers_are_left_to_torch() -> None:
    """Kept weights grow with the square of the window; in bf16 sums would be rounded."""
    q = torch.zeros(1, 1, causal.LONGEST + 1, 1)
    assert not causal.is_short(q)
    assert causal.is_short(q[:, :, 1:])
    assert not causal.is_short(q[:, :, 1:].bfloat16())


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("kind", ["document", "prefix", "window"])
def test_fast_path_forward_without_compilation(kind: str) -> None:
    """What can be shown on a CPU: same mask, same grouping of heads, same scale."""
    scope, (q, k, v) = _scopes(48)[kind], _qkv(48)
    fast = flex_attention(q, k, v, block_mask=flex_mask(scope), enable_gqa=True)
    torch.testing.assert_close(fast, attend(q, k, v, dense_mask(scope)), atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("ASSAY_SOAK") != "1", reason="compiles for a minute: make soak")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own, on its first compiling
def test_compiled_fast_path_forward() -> None:
    """Prefixes in documents, compiled: torch 2.13 has the forward on CPUs, and no backward."""
    scope, (q, k, v) = _scopes(128)["prefix"], _qkv(128)
    fast = attend(q, k, v, flex_mask(scope))
    torch.testing.assert_close(fast, attend(q, k, v, dense_mask(scope)), atol=1e-5, rtol=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="FlexAttention trains on GPUs only")
@pytest.mark.parametrize("kind", ["document", "prefix", "window"])
def test_fast_path_equals_dense_reference_with_gradients(kind: str) -> None:
    scope = _scopes(256)[kind].to(torch.device("cuda"))
    results = []
    for mask in (make_mask(scope), dense_mask(scope)):
        q, k, v = (tensor.cuda().requires_grad_() for tensor in _qkv(256))
        output = attend(q, k, v, mask)
        results.append([output, *torch.autograd.grad(output.sin().sum(), (q, k, v))])
    for fast, dense in zip(*results, strict=True):
        torch.testing.assert_close(fast, dense, atol=2e-3, rtol=0)


@pytest.mark.parametrize("kind", ["document", "prefix in documents", "window in documents"])
def test_another_first_document_changes_no_logit_of_the_second(kind: str) -> None:
    """Megatron-LM #2357: the mask was ignored. Not by one bit."""
    model = Decoder(TINY, 50)
    initialize(model, 0)
    tokens, scope = torch.tensor([[1, 2, 3, 4, 5, 6]]), KINDS[kind]
    other = torch.tensor([[9, 8, 7, 4, 5, 6]])
    difference = (model(tokens, scope) - model(other, scope)).abs()
    assert difference[0, 3:].max().item() == 0.0
    assert difference[0, :3].min().item() > 0


def test_an_encoder_decoder_looks_at_its_own_document_only() -> None:
    model = EncoderDecoder(Shape(16, 2, 4, 2, 32, encoder_depth=1), 50)
    initialize(model, 0)
    tokens, scope = torch.tensor([[1, 2, 3, 4, 5, 6]]), Scope(DOCUMENTS)
    read, seen = torch.tensor([[11, 12, 13, 14]]), Scope(torch.tensor([[0, 0, 1, 1]]))
    encoder = Scope(seen.documents_BT, torch.ones(1, 4).bool())
    before = model(tokens, scope, encoder=(read, encoder))
    for at, mine in ((1, slice(0, 3)), (2, slice(3, 6))):
        changed = read.clone()
        changed[0, at] = 40
        difference = (model(tokens, scope, encoder=(changed, encoder)) - before).abs()[0]
        assert difference[mine].min(0).values.max().item() > 1e-4
        rest = [place for place in range(6) if not mine.start <= place < mine.stop]
        assert difference[rest].max().item() == 0.0
    assert (model(tokens, scope) - before).abs().max() > 1e-3, "alone, it looks at nothing"
