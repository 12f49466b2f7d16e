"""Objectives: what is given, what is learnt; neither holds the other, nor crosses a border."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.losses import IGNORED
from trainer.objectives import CAUSAL, Example, Objective, make_example
from trainer.rewriting import (
    UL2,
    Denoiser,
    FillIn,
    continued,
    denoised,
    filled_in,
    num_spans,
)

SENTINELS = tuple(range(1000, 1100))
FILL_IN = FillIn(prefix=900, suffix=901, middle=902, rate=1.0, spm_rate=0.5)
DENOISERS = tuple(Denoiser(*pair) for pairs in UL2.values() for pair in pairs)
OBJECTIVES = {
    "prefix_lm": Objective(prefix=(0.0, 1.0)),
    "span_corruption": Objective(denoisers=(Denoiser(0.15, 3),), sentinels=SENTINELS),
    "ul2": Objective(denoisers=DENOISERS, sentinels=SENTINELS),
    "fim": Objective(fill_in=FILL_IN, eos=7),
}


def _windows() -> tuple[torch.Tensor, torch.Tensor]:
    """Three windows of 201 ids, no id twice in one: 5 documents, 1, and each token one."""
    tokens = torch.stack([torch.randperm(201, generator=_seeded(n)) + 100 for n in range(3)])
    lengths = torch.tensor([1, 2, 50, 100, 48])
    documents = torch.stack(
        [torch.arange(5).repeat_interleave(lengths), torch.zeros(201).long(), torch.arange(201)]
    )
    return tokens, documents.int()


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _texts(example: Example, row: int) -> list[tuple[list[int], list[int], list[int]]]:
    """(what is given, inputs with labels, labels) of each document of a row."""
    result = []
    documents = example.scope.documents_BT[row]
    for number in documents[documents >= 0].unique():
        here = documents == number
        inputs, labels = example.inputs_BT[row][here].tolist(), example.labels_BT[row][here]
        counted = (labels != IGNORED).tolist()
        before = [token for token, counts in zip(inputs, counted, strict=True) if not counts]
        after = [token for token, counts in zip(inputs, counted, strict=True) if counts]
        if example.encoder_tokens_BE is not None and example.encoder_scope is not None:
            of_it = example.encoder_scope.documents_BT[row] == number
            before = example.encoder_tokens_BE[row][of_it].tolist()
        result.append((before, after, labels[labels != IGNORED].tolist()))
    return result


def test_spans_of_a_document_by_hand() -> None:
    """T5's figure 2: <0> and <1> stand for what is gone; each target follows its sentinel."""
    text = denoised(list("abcdefghij"), Denoiser(0.3, 1.5), SENTINELS, Random("7"))
    assert [token for token in text.given if token in SENTINELS] == [1000, 1001]
    asked = [text.inputs[0], *text.labels]
    assert [token for token in asked if token in SENTINELS] == [1000, 1001, 1002]
    assert text.inputs[1:] == text.labels[:-1]
    assert asked[-1] == 1002, "the last sentinel ends what is asked"
    at = [asked.index(sentinel) for sentinel in (1000, 1001, 1002)]
    taken = {1000: asked[1 : at[1]], 1001: asked[at[1] + 1 : at[2]]}
    assert len(taken[1000]) + len(taken[1001]) == 3
    whole = [part for token in text.given for part in taken.get(token, [token])]
    assert whole == list("abcdefghij")


@pytest.mark.parametrize(
    ("length", "rate", "mean", "expected"),
    [
        (512, 0.15, 3, (77, 26)),  # T5's own: 512 tokens give 77 of noise in 26 spans
        (512, 0.5, 3, (256, 85)),
        (512, 0.15, 64, (77, 1)),
        (2, 0.15, 3, (1, 1)),
        (3, 0.9, 1, (2, 1)),
        (10, 0.5, 1, (5, 5)),
    ],
)
def test_how_much_is_taken_out(
    length: int, rate: float, mean: float, expected: tuple[int, int]
) -> None:
    assert num_spans(length, rate, mean) == expected


@given(st.integers(2, 300), st.sampled_from(DENOISERS), st.integers(0, 99))
@settings(deadline=None)
def test_what_is_given_and_what_is_learnt_are_the_document(
    length: int, denoiser: Denoiser, seed: int
) -> None:
    ids = list(range(length))
    text = denoised(ids, denoiser, tuple(range(1000, 1400)), Random(seed))
    asked = [text.inputs[0], *text.labels]
    spans: dict[int, list[int]] = {}
    for token in asked:
        if token >= 1000:
            spans[token] = []
        else:
            spans[max(spans)].append(token)
    assert list(spans) == list(range(1000, 1000 + len(spans)))
    assert all(spans[name] for name in list(spans)[:-1])
    assert spans[max(spans)] == []
    assert [part for token in text.given for part in spans.get(token, [token])] == ids
    assert not {t for t in text.labels if t < 1000} & set(text.given), "no label is given away"


@given(st.integers(2, 60), st.integers(0, 99))
def test_a_prefix_and_its_rest(length: int, seed: int) -> None:
    ids = list(range(length))
    text = continued(ids, (0.0, 1.0), Random(seed))
    assert [*text.given, *text.inputs[:1], *text.labels] == ids
    assert text.inputs[1:] == text.labels[:-1]
    assert len(text.labels) >= 1


@given(
    st.lists(st.integers(10, 99), min_size=2, max_size=40),
    st.integers(0, 99),
    st.booleans(),
    st.sampled_from([0.0, 1.0]),
)
def test_fill_in_the_middle(ids: list[int], seed: int, ended: bool, spm_rate: float) -> None:
    """The three parts make the document again, and its end stays at the end."""
    how = replace(FILL_IN, spm_rate=spm_rate)
    text = filled_in([*ids, 7] if ended else ids, how, 7, Random(seed))
    told = [text.inputs[0], *text.labels]
    assert text.inputs[1:] == text.labels[:-1]
    assert (told[0], told[-1]) == (900, 7)
    suffix, middle = told.index(901), told.index(902)
    first, second, third = told[1:suffix], told[suffix + 1 : middle], told[middle + 1 : -1]
    if spm_rate:
        assert (first, [*third, *second]) == ([], ids)
    else:
        assert [*first, *third, *second] == ids


@pytest.mark.parametrize("name", OBJECTIVES)
def test_nothing_crosses_a_border(name: str) -> None:
    """All that stands with a document is of it, and every document of two tokens and more is
    learnt from, in a window of any division."""
    tokens, documents = _windows()
    example = make_example(OBJECTIVES[name], tokens, documents, 3, 0)
    for row, owners in enumerate([[1, 2, 3, 4], [0], []]):
        texts = _texts(example, row)
        assert len(texts) == len(owners)
        for number, (before, after, labels) in zip(owners, texts, strict=True):
            mine = set(tokens[row][documents[row] == number].tolist())
            assert {t for t in before + after + labels if 100 <= t < 301} <= mine
            assert len(labels) >= 1
            assert mine <= set(before + after + labels), "no token is lost"
    assert example.num_targets() > 0
    assert (example.labels_BT[example.scope.documents_BT < 0] == IGNORED).all()


@pytest.mark.parametrize("name", ["prefix_lm", "span_corruption", "ul2"])
def test_an_encoder_is_given_what_a_decoder_alone_has_before(name: str) -> None:
    tokens, documents = _windows()
    alone = make_example(OBJECTIVES[name], tokens, documents, 0, 0)
    both = make_example(
        Objective(**{**vars(OBJECTIVES[name]), "encoder": True}), tokens, documents, 0, 0
    )
    for row in range(3):
        assert _texts(both, row) == _texts(alone, row)
    assert both.scope.prefix_BT is None
    assert both.encoder_scope is not None
    assert both.encoder_scope.prefix_BT is not None
    assert both.inputs_BT.shape[1] % 64 == both.encoder_scope.documents_BT.shape[1] % 64 == 0


@pytest.mark.parametrize("name", OBJECTIVES)
def test_examples_are_functions_of_the_window_and_the_seed(name: str) -> None:
    """However windows are dealt over ranks and micro-batches."""
    tokens, documents = _windows()
    whole = make_example(OBJECTIVES[name], tokens, documents, 10, 0)
    for row in range(3):
        one = slice(row, row + 1)
        alone = make_example(OBJECTIVES[name], tokens[one], documents[one], 10 + row, 0)
        assert _texts(alone, 0) == _texts(whole, row)
    for position, seed in ((11, 0), (10, 1)):
        other = make_example(OBJECTIVES[name], tokens, documents, position, seed)
        assert _texts(other, 1) != _texts(whole, 1)


def test_causal_is_the_window() -> None:
    tokens, documents = _windows()
    example = make_example(CAUSAL, tokens, documents, 0, 0)
    assert torch.equal(example.inputs_BT, tokens[:, :-1])
    counted = documents[:, 1:] == documents[:, :-1]
    assert torch.equal(example.labels_BT[counted], tokens[:, 1:][counted])
    assert (example.labels_BT[~counted] == IGNORED).all()
    assert example.scope.prefix_BT is None


def test_a_prefix_alone_keeps_the_length_of_windows() -> None:
    tokens, documents = _windows()
    assert make_example(OBJECTIVES["prefix_lm"], tokens, documents, 0, 0).inputs_BT.shape == (
        3,
        200,
    )
    assert make_example(OBJECTIVES["ul2"], tokens, documents, 0, 0).inputs_BT.shape[1] % 64 == 0


def test_rates_by_source() -> None:
    """Code is rearranged always, prose never: 2207.14255 trains both at one rate."""
    tokens, documents = _windows()
    rates = Objective(fill_in=FILL_IN, rates={"code": 1.0, "prose": 0.0})
    example = make_example(rates, tokens, documents, 0, 0, ("code", "prose", "prose"))
    marked = (example.inputs_BT == 900).sum(1).tolist()
    assert marked == [4, 0, 0]
    half = Objective(fill_in=FillIn(900, 901, 902, 0.5, 0.5))
    counts = [
        int((make_example(half, tokens[1:2], documents[1:2], n, 0).inputs_BT == 900).sum())
        for n in range(200)
    ]
    assert 80 <= sum(counts) <= 120  # 100, a deviation of 7


def test_ul2_draws_its_denoisers_evenly() -> None:
    """Seven of them (2205.05131, table 1); told apart by their mode tokens."""
    modes = tuple(Denoiser(d.rate, d.mean_span, mode=500 + n) for n, d in enumerate(DENOISERS))
    objective = Objective(denoisers=modes, sentinels=SENTINELS)
    tokens, documents = _windows()
    seen = [
        int(make_example(objective, tokens[1:2], documents[1:2], n, 0).inputs_BT[0, 0])
        for n in range(700)
    ]
    assert {*seen} == {*range(500, 507)}
    assert all(70 <= seen.count(mode) <= 130 for mode in range(500, 507))
