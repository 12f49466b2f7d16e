"""A source of mixture.yaml: which documents, how many of one value, how often.

Every key is documented where it stands.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from mixtures.rehydration import MAX_TIMES
from pipeline.amounts import Amount
from pipeline.config import Settings
from pipeline.predicates import predicate
from pipeline.syntax import SqlError


def require_predicate(expression: str) -> None:
    """Refuse what is not one expression over the columns of a document."""
    try:
        predicate(expression)
    except SqlError as error:
        raise ValueError(str(error)) from None


class Cap(Settings):
    """At most so much of a source from one value of a column: see caps.py. All keys given hold."""

    # `domain` is the registered domain, by the Public Suffix List; anything else SQL. Documents for
    # which it is NULL are not capped
    by: str
    max_share: float | None = Field(None, gt=0, lt=1)  # of the tokens that the source has then
    max_tokens: Amount | None = Field(None, gt=0)
    max_documents: Amount | None = Field(None, gt=0)

    @field_validator("by")
    @classmethod
    def _is_an_expression(cls, by: str) -> str:
        require_predicate(by)
        return by

    @model_validator(mode="after")
    def _says_how_much(self) -> Cap:
        if self.max_share is self.max_tokens is self.max_documents is None:
            raise ValueError(
                f"a cap by {self.by} says how much one value may have: `max_share: 0.005` (of the "
                "tokens of the source), `max_tokens: 10M` or `max_documents: 1000`"
            )
        return self


class Source(Settings):
    """One source: the documents of a corpus that a predicate selects."""

    corpus: str = Field(alias="from")  # a name of `corpora`
    where: str = "true"  # SQL over the columns of the `documents` view
    # Its share; they need not sum to 1. 0: in phases that give it a weight only
    weight: float = Field(1.0, ge=0, allow_inf_nan=False)
    # How often a token that is left of its copies is seen in a run: at most (repeats up to 4 cost
    # little: Muennighoff 2023), or just so often, instead of a `weight`
    max_epochs: float = Field(4.0, gt=0)
    epochs: float | None = Field(None, gt=0, allow_inf_nan=False)
    cap: Cap | None = None
    # What is left of copies stands several times, by `cluster_size`: a name of rehydration.py
    # PRESETS, or {size from which: times}
    repeats: Literal["fineweb2"] | dict[int, int] | None = None
    repeats_by: str | None = None  # the same by SQL: 1 + 2 * quality.score; see rehydration.py
    # Documents of one value (meta.repo, meta.thread, domain; SQL) stand together in windows, in
    # the order of `group_order` (SQL; else as in the corpus), and see each other; NULL: alone
    group: str | None = None
    group_order: str | None = None
    missing: Literal["keep", "drop"] | None = None  # documents for which `where` is NULL

    @field_validator("where", "repeats_by", "group", "group_order")
    @classmethod
    def _is_an_expression(cls, expression: str | None) -> str | None:
        if expression is not None:
            require_predicate(expression)
        return expression

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

    @model_validator(mode="after")
    def _one_way_each(self) -> Source:
        if self.epochs is not None and (other := {"weight", "max_epochs"} & self.model_fields_set):
            raise ValueError(
                f"`epochs: {self.epochs:g}` says how much of it a run sees, and so does "
                f"`{min(other)}`; keep one"
            )
        if self.repeats is not None and self.repeats_by is not None:
            raise ValueError("`repeats` and `repeats_by` both say how often one stands; keep one")
        if self.group_order is not None and self.group is None:
            raise ValueError(
                "`group_order` orders the members of a `group`; say which, or leave it"
            )
        return self

    def asked(self) -> dict[str, tuple[str, str]]:
        """What is asked of each document of the corpus: key of this file -> a name, and SQL."""
        found = {"where": ("where", f"{predicate(self.where)}::boolean")}
        if self.repeats_by is not None:
            found["repeats_by"] = ("times", f"{predicate(self.repeats_by)}::double")
        if self.cap is not None:
            found["cap.by"] = ("cap", f"{predicate(self.cap.by)}::varchar")
        if self.group is not None:
            found["group"] = ("group", f"{predicate(self.group)}::varchar")
        if self.group_order is not None:
            found["group_order"] = ("group_order", predicate(self.group_order))
        return found
