"""Keys of corpus.yaml for what stands twice: near copies, lines, paragraphs, long stretches."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from dedup.curve import choose
from pipeline.amounts import Amount
from pipeline.config import Settings
from pipeline.kinds import Kind


def _chosen(near: dict[str, Any]) -> tuple[int, int]:
    return choose(near["threshold"], near["permutations"])


class Near(Settings):
    """Near duplicates: MinHash-LSH proposes, true Jaccard over shingles decides."""

    threshold: float = Field(0.8, gt=0, le=1)  # Jaccard from which two documents are a pair
    ngram: int = Field(5, ge=1)  # words; one Han character or kana counts as a word
    permutations: int = Field(128, ge=8, le=1024)  # datasketch affine32, seed 1
    # As `assay dedup curve` chooses them: a pair at `threshold` is proposed with probability .998
    bands: int = Field(default_factory=lambda near: _chosen(near)[0], ge=1)  # 21 at .8 of 128
    rows: int = Field(default_factory=lambda near: _chosen(near)[1], ge=1)  # 6

    # Share of a text's shingles that stand in a longer one, from which it is contained: asked for
    # by `unique: contained`. None: not looked for, since all texts are read twice for it. .9 is
    # usual; what it finds, and what it costs: docs/dedup.md, Contained
    containment: float | None = Field(None, ge=0.5, le=1)

    @model_validator(mode="after")
    def _fits(self) -> Near:
        if self.bands * self.rows > self.permutations:
            raise ValueError(
                f"bands x rows = {self.bands} x {self.rows} exceeds permutations = "
                f"{self.permutations}; lower one or raise permutations"
            )
        return self


class Unit(Settings):
    """Lines or paragraphs that are looked for across the corpus."""

    # Distinct texts from which on one counts: what two or three share is body text more often than
    # not, and leaves a hole; docs/dedup.md has the counts
    documents: Amount = Field(10, ge=2)
    # Shorter ones stay: so many words, or Han characters and kana, or both in that proportion
    words: int = Field(10, ge=1, le=1_000)
    characters: int = Field(16, ge=1, le=1_000)


class SiteLines(Unit):
    """Lines of a site: in so many of its documents, and in such a share of them."""

    share: float = Field(0.2, gt=0, le=1)
    words: int = Field(3, ge=1, le=1_000)
    characters: int = Field(4, ge=1, le=1_000)


UNITS = ("site_lines", "repeated_lines", "repeated_paragraphs")  # keys of `across`
KEPT_ONCE = UNITS[1:]  # of which one copy stays


class Across(Settings):
    """What stands in several documents: signal group `across`, and edits of these names."""

    site_lines: SiteLines | None = None  # of a registered domain, or a source without addresses
    repeated_lines: Unit | None = None
    repeated_paragraphs: Unit | None = None
    # Of code and dialogue a line says the same in many places: `return result`, "I see."
    kinds: tuple[Kind, ...] = ("web", "book", "paper", "qa", "forum")

    @property
    def units(self) -> dict[str, Unit]:
        """Those that are looked for, by name."""
        found = {name: getattr(self, name) for name in UNITS}
        return {name: unit for name, unit in found.items() if unit is not None}


def across_named(value: object) -> object:
    return {name: {} for name in value} if isinstance(value, list) else value


class Substrings(Settings):
    """Long stretches that stand in several places, within documents and across them."""

    # All that repeats over so many bytes of UTF-8 is found, nothing below two thirds of it. 300 are
    # some 50 tokens and more in either language: docs/dedup.md. Not given: nothing is looked for
    min_bytes: Amount | None = Field(None, ge=60, le=1_000_000)

    @property
    def size(self) -> int:
        assert self.min_bytes is not None, "its stages are none of a corpus without"
        return self.min_bytes
