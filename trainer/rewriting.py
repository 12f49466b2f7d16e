"""A document as given text and a text to be learnt: prefix-LM, span corruption, fill-in-the-middle.

Pure functions of (ids, random). Nothing here knows of tensors or windows.

    plain        ids a b c d             inputs a b c        labels b c d
    continued    given a b               inputs b? c ...     labels c d       (see `continued`)
    denoised     given a <0> d <1>       inputs <0> b c <1> e    labels b c <1> e <2>
    filled_in    <PRE> a <SUF> d <MID> b c <EOS>, every token but the first a label (PSM), or
                 <PRE> <SUF> d <MID> a b c <EOS> (SPM, the second form of 2207.14255)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random


@dataclass(frozen=True)
class Text:
    """`labels[i]` is what is to follow `inputs[i]`; `given` is seen by all of it."""

    given: list[int]
    inputs: list[int]
    labels: list[int]


@dataclass(frozen=True)
class Denoiser:
    """Take `rate` of a document out, in spans of `mean_span` tokens in the mean; None: its end,
    twice `rate` of it at most (UL2 2205.05131, the S-denoiser)."""

    rate: float
    mean_span: float | None
    weight: float = 1.0
    mode: int | None = None  # a token before what is given, which says what is asked


@dataclass(frozen=True)
class FillIn:
    """Ids that mark prefix, suffix and middle, and how often (Bavarian 2207.14255)."""

    prefix: int
    suffix: int
    middle: int
    rate: float
    spm_rate: float


# UL2, table 1, in equal parts: two regular, one sequential, four extreme.
UL2: dict[str, tuple[tuple[float, float | None], ...]] = {
    "R": ((0.15, 3), (0.15, 8)),
    "S": ((0.25, None),),
    "X": ((0.5, 3), (0.5, 8), (0.15, 64), (0.5, 64)),
}


def plain(ids: list[int]) -> Text:
    return Text([], ids[:-1], ids[1:])


def continued(ids: list[int], shares: tuple[float, float], random: Random) -> Text:
    """A share of the document is given, at least a token, and the rest is learnt, at least one.

    The last token that is given stands before the rest, where its label is the first to be learnt.
    """
    share = random.uniform(*shares)
    cut = min(len(ids) - 1, max(1, round(share * len(ids))))
    return Text(ids[: cut - 1], ids[cut - 1 : -1], ids[cut:])


def denoised(
    ids: list[int], denoiser: Denoiser, sentinels: tuple[int, ...], random: Random
) -> Text:
    """Spans are taken out and a sentinel stands for each; they are learnt, each after its sentinel,
    and after the last one a sentinel more, which ends it."""
    if denoiser.mean_span is None:
        share = random.uniform(1 - 2 * denoiser.rate, 1)
        cut = min(len(ids) - 1, max(1, round(share * len(ids))))
        kept, taken = [ids[:cut]], [ids[cut:]]
    else:
        kept, taken = _spans(ids, denoiser.rate, denoiser.mean_span, random)
    given = [] if denoiser.mode is None else [denoiser.mode]
    asked: list[int] = []
    for sentinel, before, span in zip(sentinels, kept, taken, strict=False):
        given += [*before, sentinel]
        asked += [sentinel, *span]
    asked.append(sentinels[len(taken)])
    return Text(given, asked[:-1], asked[1:])


def num_spans(length: int, rate: float, mean_span: float) -> tuple[int, int]:
    """(tokens taken out, in how many spans) of a document of at least 2 tokens (T5 1910.10683,
    3.1.4, and `random_spans_noise_mask` of its code)."""
    noise = min(length - 1, max(1, round(length * rate)))
    return noise, min(max(1, round(noise / mean_span)), noise, length - noise)


def _spans(
    ids: list[int], rate: float, mean_span: float, random: Random
) -> tuple[list[list[int]], list[list[int]]]:
    """What stays and what is taken out, in turns, each of at least a token; first what stays."""
    noise, spans = num_spans(len(ids), rate, mean_span)
    lengths = zip(
        _parts(len(ids) - noise, spans, random), _parts(noise, spans, random), strict=True
    )
    kept, taken, at = [], [], 0
    for stays, goes in lengths:
        kept.append(ids[at : at + stays])
        taken.append(ids[at + stays : at + stays + goes])
        at += stays + goes
    return kept, taken


def _parts(total: int, parts: int, random: Random) -> list[int]:
    """`total` as a sum of `parts` whole numbers of at least 1, every such sum as likely."""
    cuts = [0, *sorted(random.sample(range(1, total), parts - 1)), total]
    return [end - begin for begin, end in pairwise(cuts)]


def filled_in(ids: list[int], how: FillIn, eos: int | None, random: Random) -> Text:
    """Cut a document at two places, drawn evenly, and put its middle last.

    Cuts are between tokens, where the paper's are between characters. The end of a document stays
    at the end; a piece of one that goes on in the next window gets one there too, as the end of
    the middle.
    """
    body = ids[:-1] if ids[-1] == eos else ids
    begin, end = sorted(random.randint(0, len(body)) for _ in range(2))
    before, middle, after = body[:begin], body[begin:end], body[end:]
    if random.random() < how.spm_rate:
        told = [how.prefix, how.suffix, *after, how.middle, *before, *middle]
    else:
        told = [how.prefix, *before, how.suffix, *after, how.middle, *middle]
    return plain(told if eos is None else [*told, eos])
