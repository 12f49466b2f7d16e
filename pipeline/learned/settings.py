"""quality.yaml: what a classifier learns from, and how. Each key is documented where it stands."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from pipeline.amounts import Amount
from pipeline.config import ConfigError, Settings, load


class Examples(Settings):
    """Texts of one class: files, documents of a corpus, or those of a corpus that have labels."""

    files: str | None = None  # a glob, of any format of docs/inputs.md
    text: str = "text"  # JSONL, Parquet, CSV: the field that holds the text
    source: str | None = None  # of all these `files`; default: each file is a source
    corpus: str | None = None  # folder or URL of a corpus; its held-out text is left out
    where: str | None = None  # predicate over its documents
    labels: str | None = None  # labels.parquet of `assay labels import`, of documents of `corpus`
    # A rubric of `assay review`: the labels that people gave documents of `corpus`, by name or as a
    # YAML file; of several reviewers the mean counts
    reviewed: str | None = None
    at_least: float | None = None  # of the label, of either kind
    at_most: float | None = None
    max_documents: Amount = Field(100_000, ge=1)  # of these; a sample by content hash

    @model_validator(mode="after")
    def _one_kind(self) -> Examples:
        if (self.files is None) == (self.corpus is None):
            raise ValueError("expected `files` or `corpus`, one of them")
        if self.files is not None and (self.where or self.labels or self.reviewed):
            raise ValueError(
                "`where`, `labels` and `reviewed` are of a `corpus`, and this entry has `files`"
            )
        if self.labels is not None and self.reviewed is not None:
            raise ValueError("`labels` of a model or labels that were `reviewed`: give one of them")
        bounds = [bound for bound in (self.at_least, self.at_most) if bound is not None]
        if (self.labels is None and self.reviewed is None) != (not bounds):
            raise ValueError(
                "`labels` and `reviewed` go with `at_least` or `at_most`, as in at_least: 3"
            )
        return self


class InputView(Settings):
    """What the model sees of a text: filters/spread.py. Stored with it."""

    units: Literal["characters", "jieba", "raw"] = "characters"
    fold: bool = True  # width, case, traditional to simplified
    max_chars: Amount = Field(4_000, ge=1)


class HeldOut(Settings):
    """What the model is judged and calibrated by."""

    share: float = Field(0.2, gt=0, le=0.5)  # of each class and language
    by: Literal["source", "content"] = "source"  # whole sources, where a class has several
    sources: tuple[str, ...] = ()  # these, and no others


class FastText(Settings):
    """fastText's own settings. With two labels the model is linear, so vectors may be short."""

    dim: int = Field(16, ge=1)
    word_ngrams: int = Field(2, ge=1)  # pairs of Han characters are words, more often than not
    epochs: int = Field(5, ge=1)
    learning_rate: float = Field(0.5, gt=0)
    min_count: int = Field(2, ge=1)  # of a token
    bucket: Amount = Field(262_144, ge=16_384)  # rows for n-grams


class Hand(Settings):
    """Labels by hand against which those of `labels` are held before anything is trained."""

    file: (
        str  # Parquet, CSV or JSONL: content_hash, score; or a corpus with labels of `assay review`
    )
    rubric: str = "education"  # of such labels: one of 0 to 5, by name or as a YAML file
    min_kappa: float = Field(0.6, ge=-1, le=1)  # quadratic weights; .61 is "substantial" in
    # Landis and Koch 1977; the lower end of its interval must reach it
    min_documents: Amount = Field(50, ge=2)


class ClassifierSettings(Settings):
    """quality.yaml."""

    positive: tuple[Examples, ...] = Field(min_length=1)
    negative: tuple[Examples, ...] = Field(min_length=1)
    output: str  # the model, as models/quality.bin; its card stands beside it
    view: InputView = InputView()
    heldout: HeldOut = HeldOut()
    fasttext: FastText = FastText()
    calibration: Literal["auto", "platt", "isotonic"] = "auto"
    hand: Hand | None = None  # needed where examples have `labels`
    seed: int = Field(17, ge=0)

    @model_validator(mode="after")
    def _labels_are_checked(self) -> ClassifierSettings:
        if self.hand is None and any(item.labels for item in (*self.positive, *self.negative)):
            raise ValueError(
                "labels of a model are trained on only where some were checked by hand: name those "
                "as `hand: {file: hand.csv}` (content_hash, score), or a corpus that was reviewed"
            )
        return self


def load_classifier(path: Path) -> ClassifierSettings:
    """Read quality.yaml; relative paths are relative to its folder.

    Raises:
        ConfigError: a key or value is wrong.
    """
    settings = load(path, ClassifierSettings)
    if not settings.output.endswith(".bin"):
        raise ConfigError(f"{path}: key `output`: {settings.output!r}; a model ends in .bin")
    folder = str(path.resolve().parent)

    def resolve(value: str | None, *, pattern: bool = False) -> str | None:
        if value is None or "://" in value:
            return value
        return os.path.join(glob.escape(folder) if pattern else folder, value)

    def resolve_rubric(named: str | None) -> str | None:
        return resolve(named) if named and Path(named).suffix else named

    def resolved(item: Examples) -> Examples:
        return item.model_copy(
            update={
                "files": resolve(item.files, pattern=True),
                "corpus": resolve(item.corpus),
                "labels": resolve(item.labels),
                "reviewed": resolve_rubric(item.reviewed),
            }
        )

    hand = settings.hand
    if hand is not None:
        asked = {"file": resolve(hand.file), "rubric": resolve_rubric(hand.rubric)}
        hand = hand.model_copy(update=asked)
    return settings.model_copy(
        update={
            "positive": tuple(map(resolved, settings.positive)),
            "negative": tuple(map(resolved, settings.negative)),
            "output": resolve(settings.output),
            "hand": hand,
        }
    )
