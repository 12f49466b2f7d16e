"""A source of mixture.yaml: which documents, how many of one value, how often.

Every key is documented where it stands.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from mixtures.rehydration import MAX_TIMES
from pipeline.config import Settings
from pipeline.predicates import predicate
from pipeline.syntax import SqlError


class Cap(Settings):
    """At most this share of a source's documents from one value of a column."""

    by: str
    max_share: float = Field(gt=0, le=1)


def require_predicate(expression: str) -> None:
    """Refuse what is not one expression over the columns of a document."""
    try:
        predicate(expression)
    except SqlError as error:
        raise ValueError(str(error)) from None


class Source(Settings):
    """One source: the documents of a corpus that a predicate selects."""

    corpus: str = Field(alias="from")  # a name of `corpora`
    where: str = "true"  # SQL over the columns of the `documents` view
    # Share of tokens; they need not sum to 1. 0: in phases that give it a weight only
    weight: float = Field(1.0, ge=0, allow_inf_nan=False)
    max_epochs: float = Field(4.0, gt=0)  # repeats up to 4 cost little: Muennighoff 2023
    cap: Cap | None = None
    # What is left of copies stands several times, by `cluster_size`: a name of rehydration.py
    # PRESETS, or {size from which: times}. An epoch holds them all
    repeats: Literal["fineweb2"] | dict[int, int] | None = None
    missing: Literal["keep", "drop"] | None = None  # documents for which `where` is NULL

    @field_validator("where")
    @classmethod
    def _is_a_predicate(cls, where: str) -> str:
        require_predicate(where)
        return where

    @field_validator("repeats")
    @classmethod
    def _from_one_on(cls, repeats: str | dict[int, int] | None) -> str | dict[int, int] | None:
        if isinstance(repeats, dict) and (
            min(repeats, default=0) != 1
            or min(repeats.values()) < 1
            or max(repeats.values()) > MAX_TIMES
        ):
            raise ValueError(
                f"{repeats}: sizes begin at 1, and a document stands 1 to {MAX_TIMES} times, as in "
                "{1: 1, 2: 2, 100: 4}; what is to go, `where: cluster_size < 1000` leaves out"
            )
        return repeats
