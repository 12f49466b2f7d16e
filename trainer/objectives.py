"""What a model learns from a window: inputs, labels, and what may look at what.

An example is a function of (window, its number, seed): a resumed run, and any layout, makes the
same ones. `causal`, the next token, is the default and changes nothing of a window. The others work
on each document of a window by itself (rewriting.py), so nothing crosses a border; what they add
makes examples longer than windows, in steps of 64, rather than that a token is lost.

Shapes: B windows, S = T + 1 tokens of a whole window, T inputs, E tokens of an encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

import torch
from torch import Tensor

from trainer.attention import Scope
from trainer.losses import IGNORED
from trainer.rewriting import Denoiser, FillIn, Text, continued, denoised, filled_in, plain

STEP = 64  # examples that grow do so by this many places, so that few shapes are compiled


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
    """What is asked of a model, with the ids that it needs: causal where nothing is set.

    `prefix`: (least, most) share of a document that is given, the rest is to be continued;
    `denoisers`: one is drawn for each document, by weight; `fill_in`: FIM.
    """

    prefix: tuple[float, float] | None = None
    denoisers: tuple[Denoiser, ...] = ()
    fill_in: FillIn | None = None
    sentinels: tuple[int, ...] = ()  # ids that stand for what was taken out, in their order
    eos: int | None = None
    encoder: bool = False  # what is given goes to an encoder
    rates: dict[str, float] = field(default_factory=dict)  # of fill_in, by source

    @property
    def causal(self) -> bool:
        """Whether examples are their windows, as long as these."""
        return self.prefix is None and not self.denoisers and self.fill_in is None


CAUSAL = Objective()


def make_example(
    objective: Objective,
    tokens_BS: Tensor,
    documents_BS: Tensor,
    position: int,
    seed: int,
    sources: Sequence[str] = (),
) -> Example:
    """The examples of windows `position`, `position` + 1 ... of a run; `sources`: one of each.

    The first token of a document is never a target unless it follows what is given: it would be
    predicted across a border.
    """
    if objective.causal:
        inputs_BT = tokens_BS[:, :-1]
        inside_BT = documents_BS[:, 1:] == documents_BS[:, :-1]
        labels_BT = tokens_BS[:, 1:].masked_fill(~inside_BT, IGNORED)
        return Example(inputs_BT, labels_BT, Scope(documents_BS[:, :-1]))
    rows = []
    for at, (tokens, documents) in enumerate(zip(tokens_BS, documents_BS, strict=True)):
        random = Random(f"{seed}/{position + at}")
        source = sources[at] if sources else ""
        texts = [_text(objective, ids, random, source) for ids in _split(tokens, documents)]
        rows.append([text for text in texts if text.inputs])
    return _stacked(objective, rows, tokens_BS.shape[1] - 1)


def _split(tokens_S: Tensor, documents_S: Tensor) -> list[list[int]]:
    """The tokens of each document of a window; one token teaches nothing and is left out."""
    borders = (documents_S[1:] != documents_S[:-1]).nonzero()[:, 0] + 1
    return [ids.tolist() for ids in tokens_S.tensor_split(borders) if len(ids) > 1]


def _text(objective: Objective, ids: list[int], random: Random, source: str) -> Text:
    if objective.fill_in is not None:
        rate = objective.rates.get(source, objective.fill_in.rate)
        chosen = random.random() < rate
        return filled_in(ids, objective.fill_in, objective.eos, random) if chosen else plain(ids)
    if objective.prefix is not None:
        return continued(ids, objective.prefix, random)
    weights = [denoiser.weight for denoiser in objective.denoisers]
    (denoiser,) = random.choices(objective.denoisers, weights)
    return denoised(ids, denoiser, objective.sentinels, random)


class _Row:
    """The texts of one window, one after the other."""

    def __init__(self, texts: Sequence[Text], encoder: bool) -> None:
        self.inputs: list[int] = []
        self.labels: list[int] = []
        self.prefix: list[bool] = []
        self.documents: list[int] = []
        self.given: list[int] = []
        self.given_documents: list[int] = []
        for number, text in enumerate(texts):
            before = [] if encoder else text.given
            self.inputs += before + text.inputs
            self.labels += [IGNORED] * len(before) + text.labels
            # the first input is of what is given too: its last token, or a sentinel
            marked = len(before) + 1 if before else 0
            self.prefix += [True] * marked
            self.prefix += [False] * (len(before) + len(text.inputs) - marked)
            self.documents += [number] * (len(before) + len(text.inputs))
            self.given += text.given
            self.given_documents += [number] * len(text.given)


def _stacked(objective: Objective, windows: list[list[Text]], least: int) -> Example:
    """Texts as tensors. In a decoder alone, what is given stands before what is asked."""
    rows = [_Row(texts, objective.encoder) for texts in windows]
    length = _length([row.inputs for row in rows], 0 if objective.encoder else least)
    prefix_BT = _filled([row.prefix for row in rows], length, 0).bool()
    example = Example(
        _filled([row.inputs for row in rows], length, 0),
        _filled([row.labels for row in rows], length, IGNORED),
        Scope(
            _documents([row.documents for row in rows], length),
            None if objective.encoder or objective.fill_in is not None else prefix_BT,
        ),
    )
    if not objective.encoder:
        return example
    size = _length([row.given for row in rows], 0)
    documents_BE = _documents([row.given_documents for row in rows], size)
    tokens_BE = _filled([row.given for row in rows], size, 0)
    everything_BE = torch.ones_like(documents_BE, dtype=torch.bool)
    scope = Scope(documents_BE, everything_BE)
    return replace(example, encoder_tokens_BE=tokens_BE, encoder_scope=scope)


def _length(rows: list[list[int]], least: int) -> int:
    """`least`, or where a row is longer, that in whole steps."""
    longest = max(map(len, rows), default=0)
    return least if longest <= least and least else max(1, -(-longest // STEP)) * STEP


def _filled(rows: Sequence[Sequence[int]], length: int, blank: int) -> Tensor:
    return torch.tensor([[*row, *[blank] * (length - len(row))] for row in rows])


def _documents(rows: list[list[int]], length: int) -> Tensor:
    """Numbers of documents; each place of the filling is one of its own, below 0."""
    filled = [row + [-1 - at for at in range(length - len(row))] for row in rows]
    return torch.tensor(filled, dtype=torch.int32)
