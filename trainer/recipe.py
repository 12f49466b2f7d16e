"""How a run is trained: the keys of run.yaml about its steps, learning rate and optimizer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from pipeline.amounts import Amount, amount
from pipeline.config import Settings

Tokens = Annotated[Amount, Field(ge=1)]


def _rises(ramp: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    begins = [begin for begin, _ in ramp]
    if begins[0] != 0 or begins != sorted(set(begins)):
        raise ValueError(
            "a ramp is [tokens from which on, batch] entries, the first from 0, each later than "
            f"the one before, as in [[0, 16k], [1M, 64k]]; it begins at {begins}"
        )
    return ramp


Begin = Annotated[int, BeforeValidator(lambda value: amount(value)), Field(ge=0)]
Ramp = Annotated[tuple[tuple[Begin, Tokens], ...], Field(min_length=1), AfterValidator(_rises)]


def span(value: object) -> object:
    """A share of the run (below 1) or an amount of tokens."""
    return value if isinstance(value, int | float) and value < 1 else amount(value)


Span = Annotated[float, Field(ge=0), BeforeValidator(span)]


class Schedule(Settings):
    """The learning rate over the tokens of the run: `warmup` from 0 up to `learning_rate`, then
    wsd: flat, and linear down over `decay` (MiniCPM 2404.06395); cosine, linear: down from there to
    the end (Chinchilla 2203.15556 shows cosine, for a length that is known); constant: flat."""

    shape: Literal["wsd", "cosine", "linear", "constant"] = "wsd"
    warmup: Span = 0.05  # share of the run, or tokens ("1M")
    decay: Span = 0.2  # of wsd: share of the run, or tokens, at its end; 0.1-0.2 suffice there
    final: float = Field(0.0, ge=0, lt=1)  # share of learning_rate at the end

    @model_validator(mode="after")
    def _decays(self) -> Schedule:
        if self.shape != "wsd" and self.decay != Schedule.model_fields["decay"].default:
            raise ValueError(
                f"`decay: {self.decay:g}` says nothing with `shape: {self.shape}`, which goes down "
                "from the end of `warmup`, or not at all; leave it out, or take `shape: wsd`"
            )
        return self


class Branch(Settings):
    """A run that begins at a checkpoint of another and takes the learning rate from there down to
    `schedule.final`, linearly. Other keys are those of that run where they are not given."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    parent: str = Field(alias="from")  # folder of the run, relative to this file
    at: str  # its checkpoint: step-400, or step-00000400
    decay: Tokens  # length of this run
    begin: int | None = None  # tokens of the checkpoint; worked out, not to be given
    share: float | None = None  # of learning_rate, where the parent stood then; likewise

    @property
    def resolved(self) -> tuple[int, float]:
        """`begin` and `share`, which trainer/branch.py works out."""
        assert self.begin is not None, "load_run resolves branches"
        assert self.share is not None
        return self.begin, self.share


class Optimizer(Settings):
    kind: Literal["adamw", "muon"] = "adamw"  # muon: for hidden matrices, AdamW for all else
    epsilon: float = Field(1e-8, gt=0)  # of AdamW
    momentum: float = Field(0.95, ge=0, lt=1)  # of Muon (Jordan 2024)
    embedding_weight_decay: float | None = Field(None, ge=0)  # None: `weight_decay`; OLMo 2 has 0


def by_kind(value: object) -> object:
    """`muon` -> {kind: muon}; a mapping stays."""
    return {"kind": value} if isinstance(value, str) else value
