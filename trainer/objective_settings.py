"""The key `objective` of run.yaml, and the ids that it needs of a tokenizer.

objective: causal                                  # or prefix_lm, span_corruption, ul2, fim
objective: {prefix_lm: {least: 0.25, most: 0.75}}
objective: {span_corruption: {rate: 0.15, mean_span: 3}}
objective: {ul2: {modes: ["[R]", "[S]", "[X]"]}}
objective: {fim: {rate: 0.5, spm_rate: 0.5, sources: {code: 0.9, books: 0}}}
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from mixtures.plan import Plan
from mixtures.plan_tokenizer import tokenizer_file
from pipeline.config import ConfigError, Settings
from trainer.rewriting import UL2, Denoiser, FillIn, num_spans

if TYPE_CHECKING:  # run.yaml is checked without torch
    from trainer.objectives import Objective

Share = Annotated[float, Field(ge=0, le=1)]


class PrefixLM(Settings):
    """A share of each document, drawn evenly between these, is given; the rest is learnt."""

    least: Share = 0.0
    most: Share = 1.0

    @model_validator(mode="after")
    def _in_order(self) -> PrefixLM:
        if self.least > self.most:
            raise ValueError(f"least {self.least:g} is above most {self.most:g}; swap them")
        return self


class SpanCorruption(Settings):
    """T5 1910.10683, section 3.3.4: 15 % in spans of 3."""

    rate: float = Field(0.15, gt=0, lt=1)  # of the tokens that are taken out
    mean_span: float = Field(3.0, ge=1)  # tokens
    sentinels: str = "<extra_id_{}>"  # their names, {} counts from 0


class MixtureOfDenoisers(Settings):
    """UL2 2205.05131, table 1."""

    sentinels: str = "<extra_id_{}>"
    modes: tuple[str, str, str] | None = None  # tokens before R, S and X; None: none


class FillInTheMiddle(Settings):
    """Bavarian 2207.14255: rates of 0.5 to 0.9 cost nothing left to right, half of it as SPM."""

    rate: Share = 0.5  # of documents
    spm_rate: Share = 0.5  # of these: suffix, prefix, middle; the rest prefix, suffix, middle
    sources: dict[str, Share] = Field(default_factory=dict)  # source of the mixture -> its own rate
    tokens: tuple[str, str, str] = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")


class ObjectiveKeys(Settings):
    """At most one; none: the next token."""

    prefix_lm: PrefixLM | None = None
    span_corruption: SpanCorruption | None = None
    ul2: MixtureOfDenoisers | None = None
    fim: FillInTheMiddle | None = None

    @property
    def grows(self) -> bool:
        """Whether examples may be longer than their windows."""
        return any(key is not None for key in (self.span_corruption, self.ul2, self.fim))

    @model_validator(mode="after")
    def _one(self) -> ObjectiveKeys:
        named = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(named) > 1:
            raise ValueError(f"{' and '.join(named)}: give one objective")
        return self


def named(value: object) -> object:
    """A name -> its key with nothing set; a mapping stays."""
    if value == "causal":
        return {}
    if isinstance(value, str) and value not in ObjectiveKeys.model_fields:
        near = difflib.get_close_matches(value, ObjectiveKeys.model_fields, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else "known are these"
        raise ValueError(
            f"no objective {value!r}; {hint} ({', '.join(ObjectiveKeys.model_fields)})"
        )
    return {value: {}} if isinstance(value, str) else value


def resolve(keys: ObjectiveKeys, plan: Plan, encoder: bool) -> Objective:
    """What `keys` ask for, with ids of the tokenizer of a plan.

    Raises:
        ConfigError: a token that the tokenizer has not, or too few sentinels; an encoder without
            anything to read.
    """
    from trainer.objectives import Objective

    reads = keys.prefix_lm or keys.span_corruption or keys.ul2
    if encoder and not reads:
        raise ConfigError(
            "key `objective`: an encoder-decoder (`model.encoder_depth`) needs what is given to "
            "its encoder; use prefix_lm, span_corruption or ul2"
        )
    ids = _Ids(tokenizer_file(plan), plan.vocab_size)
    if keys.prefix_lm is not None:
        return Objective(prefix=(keys.prefix_lm.least, keys.prefix_lm.most), encoder=encoder)
    if keys.fim is not None:
        fim = keys.fim
        known = {source.name for source in plan.sources}
        for source in fim.sources:
            if source not in known:
                raise ConfigError(
                    f"key `objective.fim.sources`: the mixture has no source `{source}`; it has "
                    f"{', '.join(sorted(known))}"
                )
        before, after, middle = (ids.id(name, "fim.tokens") for name in fim.tokens)
        how = FillIn(before, after, middle, fim.rate, fim.spm_rate)
        return Objective(fill_in=how, eos=plan.eos_id, rates=dict(fim.sources))
    if keys.span_corruption is not None:
        spans = keys.span_corruption
        denoisers: tuple[Denoiser, ...] = (Denoiser(spans.rate, spans.mean_span),)
        key, pattern = "span_corruption", spans.sentinels
    elif keys.ul2 is not None:
        modes = keys.ul2.modes
        denoisers = tuple(
            Denoiser(*pair, mode=None if modes is None else ids.id(modes[at], "ul2.modes"))
            for at, pairs in enumerate(UL2.values())
            for pair in pairs
        )
        key, pattern = "ul2", keys.ul2.sentinels
    else:
        return Objective()
    length = plan.sequence_length + 1
    most = max(
        1 if d.mean_span is None else num_spans(length, d.rate, d.mean_span)[1] for d in denoisers
    )
    sentinels = ids.counted(pattern)
    if len(sentinels) <= most:
        raise ConfigError(
            f"key `objective.{key}.sentinels`: a document of {length:,} tokens may need "
            f"{most + 1} of {pattern!r}, {plan.tokenizer_file} has {len(sentinels)}; add special "
            "tokens to it, shorten `sequence_length` of the mixture, or lengthen spans"
        )
    return Objective(denoisers=denoisers, sentinels=sentinels, encoder=encoder)


class _Ids:
    """The added tokens of a tokenizer.json."""

    def __init__(self, path: Path, vocabulary: int) -> None:
        added = json.loads(path.read_bytes()).get("added_tokens") or ()
        self._path, self._vocabulary = path, vocabulary
        self._ids = {token["content"]: int(token["id"]) for token in added}

    def id(self, name: str, key: str) -> int:
        found = self._ids.get(name)
        if found is None or found >= self._vocabulary:
            known = ", ".join(sorted(self._ids)[:8]) or "none"
            raise ConfigError(
                f"key `objective.{key}`: {self._path} has no special token {name!r} below "
                f"{self._vocabulary:,}; name one of its own ({known}), or add it and tokenize again"
            )
        return found

    def counted(self, pattern: str) -> tuple[int, ...]:
        """Ids of pattern 0, 1, 2 ..., as far as they are there."""
        found: list[int] = []
        while (number := self._ids.get(pattern.format(len(found)))) is not None:
            if number >= self._vocabulary or number in found:
                break
            found.append(number)
        return tuple(found)
