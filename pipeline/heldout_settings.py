"""Keys of corpus.yaml for text that no run is to train on: held-out sets, parallel pages of theirs,
items of evaluations."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator, model_validator

from pipeline.amounts import Amount
from pipeline.config import Settings


class Heldout(Settings):
    """Frozen evaluation text, chosen by content hash before any predicate."""

    share: float = Field(0.005, ge=0, le=0.5)  # of the texts per language and source; 0: no sets
    min_documents: Amount = Field(4, ge=0)  # per language and source with at least 20 times as many
    # Per language and source, too: some 2.5 million tokens, where bits per byte have long settled
    # (100,000 a domain are enough, Paloma, Magnusson et al. 2023), and 30 MB of index for all
    # workers. At 20 GB of a source `share` alone would take ten times as many.
    max_documents: Amount = Field(5_000, ge=1)
    keep: tuple[str, ...] = ()  # heldout.json, or URLs, of corpora whose sets stay held out
    independent: tuple[str, ...] = ()  # globs of JSONL files that are evaluation text as a whole
    containment: float = Field(0.8, gt=0, le=1)  # share of shingles that makes a contained copy

    @model_validator(mode="after")
    def _fits(self) -> Heldout:
        if self.max_documents < self.min_documents:
            raise ValueError(
                f"max_documents = {self.max_documents} is below min_documents = "
                f"{self.min_documents}; raise the one or lower the other"
            )
        return self


class TranslationGroup(Settings):
    """How parallel pages are told."""

    field: str | None = None  # meta.<kept field>: documents of one value are one group
    # Of addresses: [[/en/, /zh/], ["?lang=en", "?lang=zh"]]. Every variant, as plain text and
    # wherever it stands, becomes the first of its list; addresses that are then equal are one
    # group, and one that holds no variant is of none
    url: tuple[tuple[str, ...], ...] | None = None
    # By what pages say of each other: <link rel="alternate" hreflang>; wants `keep: [hreflang]`
    hreflang: bool = False

    @field_validator("field")
    @classmethod
    def _is_kept(cls, field: str | None) -> str | None:
        if field is not None and not field.removeprefix("meta."):
            raise ValueError("names no field; expected meta.<field>, as in meta.page")
        if field is not None and not field.startswith("meta."):
            raise ValueError(f"{field!r}: expected a kept field, as in meta.{field}")
        return field

    @field_validator("url")
    @classmethod
    def _are_variants(
        cls, url: tuple[tuple[str, ...], ...] | None
    ) -> tuple[tuple[str, ...], ...] | None:
        for variants in url or ():
            if len(set(variants)) < 2 or len(set(variants)) < len(variants) or "" in variants:
                raise ValueError(
                    f"{list(variants)}: expected two or more distinct variants, as in [/en/, /zh/]"
                )
        return url

    @model_validator(mode="after")
    def _one_way(self) -> TranslationGroup:
        if [self.field is not None, bool(self.url), self.hreflang].count(True) != 1:
            raise ValueError(
                "expected one of `field: meta.page`, `url: [[/en/, /zh/]]`, `hreflang: true`"
            )
        return self


class EvaluationSet(Settings):
    """Items of an evaluation, one a line of JSONL or a row of Parquet."""

    files: tuple[str, ...] = Field(min_length=1)  # globs, local or of a store
    # The fields of an item: the first is the question, others go with it. Default: those that it
    # has of pipeline/evaluation_items.py QUESTIONS and OTHERS
    fields: tuple[str, ...] = ()

    @field_validator("files", "fields", mode="before")
    @classmethod
    def _one_word(cls, named: object) -> object:
        return [named] if isinstance(named, str) else named


def _evaluation_set(value: object) -> object:
    return {"files": value} if isinstance(value, str | list) else value


class Decontaminate(Settings):
    """Evaluation items that are looked for in every document: signal group `contamination`."""

    # Name -> files, or files and fields: {gsm8k: "evals/gsm8k/*.jsonl"}
    sets: dict[str, Annotated[EvaluationSet, BeforeValidator(_evaluation_set)]] = Field(
        default_factory=dict
    )
    # Length of n-grams: Llama 3 and Tülu 3 (2024) take 8 words, GPT-3 (2020) took 13. Of Han
    # characters and kana 10, by measurement: docs/decontamination.md
    words: int = Field(8, ge=3, le=100)
    characters: int = Field(10, ge=3, le=100)
    # Of an item's words, or its question's, in one place: then it is found. Half of an item is
    share: float = Field(0.4, gt=0, le=1)

    @field_validator("sets")
    @classmethod
    def _are_names(cls, sets: dict[str, EvaluationSet]) -> dict[str, EvaluationSet]:
        for name in sets:
            if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is None:
                raise ValueError(
                    f"{name!r}: a name is made of A-Z, a-z, 0-9, `.`, `_` and `-`, as in gsm8k"
                )
        return sets
