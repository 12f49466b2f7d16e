"""corpus.yaml: what comes in, and how it is measured. Every key is documented where it stands."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from dedup.curve import choose
from pipeline.amounts import Amount, NumBytes
from pipeline.config import ConfigError, Settings, load, suggestion

Kind = Literal["web", "book", "code", "paper", "qa", "forum", "dialogue"]
Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# One by the shape of what stands there, so that an error speaks of that one alone.
Languages = Annotated[
    Annotated[tuple[str, ...], Tag("list")] | Annotated[dict[str, Score], Tag("mapping")],
    Discriminator(lambda value: "mapping" if isinstance(value, dict) else "list"),
]
Extractor = Literal["resiliparse", "trafilatura"]


class Input(Settings):
    """One source: a set of files of one kind."""

    source: str  # unique; letters, digits, `.`, `_`, `-`; stands in ids
    files: str  # a glob, local or of a store (s3://, gs://, hf://, https://)
    kind: Kind = "web"  # what the text is; chooses the rules of presets: filters/presets
    text: str = "text"  # JSONL, Parquet, CSV: the field that holds the text
    id: str = "id"  # the field with the user's own id, kept as source_id where present
    url: str = "url"  # the field with the address, where present
    decode: str | None = None  # of token files (.bin, .ds): the tokenizer.json that made their ids
    keep: tuple[str, ...] = ()  # further fields, kept as meta.*; docs/inputs.md: of each format

    @field_validator("source")
    @classmethod
    def _is_a_name(cls, source: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", source):
            raise ValueError("a name is made of A-Z, a-z, 0-9, `.`, `_` and `-`, as in zhihu-qa")
        return source


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
        if (self.field is None) == (not self.url):
            raise ValueError("expected `field: meta.page` or `url: [[/en/, /zh/]]`, one of the two")
        return self


TOKENIZER_FILES = (".json", ".tiktoken", ".model")


class Tokenizer(Settings):
    """A tokenizer and the explicit policy for the ids around a document."""

    # Path of a tokenizer.json, of tiktoken's ranks (.tiktoken) or a SentencePiece model (.model);
    # or a name of pipeline/tokenizer.py NAMES
    file: str
    # Of ranks: how text is split, a name of pipeline/tokenizer_files.py SPLITS or a regular
    # expression, and control tokens with their ids (default: the published ones, where known)
    split: str | None = None
    special: dict[str, int] | None = None
    bos: str | None = None  # token put before each document; none by default
    eos: str | None = "auto"  # token put after each document; auto: the tokenizer's own


def _tokenizer(value: object) -> object:
    return {"file": value} if isinstance(value, str) else value


class Urls(Settings):
    """Lists of addresses: files with an entry a line, or folders in UT1's format."""

    block: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()  # what stands here is not blocked


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
    # characters and kana 10, by measurement: docs/filters.md
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


def _across(value: object) -> object:
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


class CorpusSettings(Settings):
    """corpus.yaml."""

    inputs: tuple[Input, ...] = Field(min_length=1)
    output: str | None = None  # folder of the corpus; default: runs/<name of the yaml file>
    # Kept languages: [zh, en], or with the least score of each, {zh: 0.5, en: 0.65}. Held-out sets
    # are chosen of these, and `languages.pass` tells them in SQL; nothing is dropped.
    languages: Languages = ("zh", "en")
    tokenizer: Annotated[Tokenizer, BeforeValidator(_tokenizer)]
    heldout: Heldout = Heldout()
    # Parallel pages, as in {url: [[/en/, /zh/]]} or {field: meta.page}: on one side of a held-out
    # split, and a column for `group` of a mixture; docs/mixtures.md, Parallel pages
    translation_group: TranslationGroup | None = None
    near: Near = Near()
    # Groups of filters/signals.py. `default`: those of every corpus; `all`: every one of the table
    signals: tuple[str, ...] = Field(("default",), min_length=1)
    # Rules of filters/editors.py whose edits are stored, for mixtures to apply; none by default
    edits: tuple[str, ...] = ()
    # Signal group -> model of `assay classifier train`, its card beside it
    classifiers: dict[str, str] = Field(default_factory=dict)
    perplexity: str | None = None  # models of `assay perplexity train`, their card beside them
    # Name -> file with a phrase a line (filters/lists.py), counted by the signal group `lists`
    lists: dict[str, str] = Field(default_factory=dict)
    # Groups `<name>_faithful`: datatrove 0.10.1's numbers to the bit, and 200 times as slow
    faithful: tuple[Literal["gopher", "c4", "fineweb"], ...] = ()
    # Evaluation sets: signal group and edits `contamination`; docs/filters.md, Decontamination
    decontaminate: Decontaminate = Decontaminate()
    # Lines and paragraphs that stand in several documents: names, as in [site_lines], or each with
    # settings of its own; docs/dedup.md, Lines and paragraphs
    across: Annotated[Across, BeforeValidator(_across)] = Across()
    # Table, edits and signal group `substrings`; docs/dedup.md
    substrings: Substrings = Substrings()
    urls: Urls = Urls()  # signal group `urls`, where it names lists; docs/filters.md, Addresses
    extractor: Extractor = "resiliparse"
    hard: tuple[Literal["empty", "not_text"], ...] = ("empty", "not_text")  # dropped at ingest
    shard_bytes: NumBytes = Field(32_000_000, ge=1_000)  # text of one shard, about; also 32MB
    max_bad_files: Amount = Field(0, ge=0)  # input files that may fail: listed, and tried again

    @field_validator("signals", mode="before")
    @classmethod
    def _one_word(cls, signals: object) -> object:
        return [signals] if isinstance(signals, str) else signals

    @field_validator("signals", "edits", "faithful")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError("a name stands twice; name each once")
        return names

    @field_validator("classifiers", "lists")
    @classmethod
    def _are_names(cls, named: dict[str, str]) -> dict[str, str]:
        for name in named:
            if re.fullmatch(r"[a-z][a-z0-9_]*", name) is None:
                raise ValueError(f"{name!r}: a name is made of a-z, 0-9 and _, as in quality")
        return named

    @field_validator("lists")
    @classmethod
    def _columns_differ(cls, lists: dict[str, str]) -> dict[str, str]:
        for name in lists:
            if f"{name}_words" in lists:
                raise ValueError(
                    f"{name}_words is the column with what is found of {name}; "
                    "give that list another name"
                )
        return lists

    @field_validator("inputs")
    @classmethod
    def _unique_sources(cls, inputs: tuple[Input, ...]) -> tuple[Input, ...]:
        names = [item.source for item in inputs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"source {twice[0]!r} stands twice; give each input its own name")
        return inputs

    @model_validator(mode="after")
    def _group_is_kept(self) -> CorpusSettings:
        field = self.translation_group and self.translation_group.field
        kept = {f"meta.{name}" for item in self.inputs for name in item.keep}
        if field and field not in kept:
            raise ValueError(
                f"key `translation_group.field`: no input keeps {field}; "
                + (suggestion(field, kept) if kept else "add it to the `keep` of an input")
            )
        return self


def load_corpus(path: str | Path, *, tokenizer_exists: bool = True) -> CorpusSettings:
    """Read corpus.yaml; relative `files`, `tokenizer` and `output` are relative to its folder.

    `$NAME` in a path is that environment variable.

    `tokenizer_exists=False` is for the one verb that makes the tokenizer.
    """
    path = Path(path)
    settings = load(path, CorpusSettings)

    def resolve(value: str, base: str = str(path.resolve().parent)) -> str:
        value = os.path.expandvars(value)
        if "$" in value:
            raise ConfigError(f"{path}: {value!r} names an environment variable that is not set")
        absolute = "://" in value or Path(value).is_absolute()
        return value if absolute else os.path.join(base, value)

    def resolve_glob(value: str) -> str:
        return resolve(value, glob.escape(str(path.resolve().parent)))

    inputs = tuple(
        item.model_copy(
            update={
                "files": resolve_glob(item.files),
                "decode": item.decode and resolve(item.decode),
            }
        )
        for item in settings.inputs
    )
    for item in inputs:
        if item.decode and not Path(item.decode).exists():
            raise ConfigError(
                f"{path}: source {item.source!r}: key `decode`: no such file {item.decode}"
            )
    heldout = settings.heldout.model_copy(
        update={
            "keep": tuple(resolve(k) for k in settings.heldout.keep),
            "independent": tuple(resolve_glob(g) for g in settings.heldout.independent),
        }
    )
    sets = {
        name: given.model_copy(update={"files": tuple(map(resolve_glob, given.files))})
        for name, given in settings.decontaminate.sets.items()
    }
    tokenizer = settings.tokenizer
    if tokenizer.file.endswith(TOKENIZER_FILES):
        tokenizer = tokenizer.model_copy(update={"file": resolve(tokenizer.file)})
    urls = settings.urls.model_copy(
        update={
            "block": tuple(resolve(listed) for listed in settings.urls.block),
            "allow": tuple(resolve(listed) for listed in settings.urls.allow),
        }
    )
    output = resolve(settings.output) if settings.output else resolve(f"runs/{path.stem}")
    classifiers = {name: resolve(model) for name, model in settings.classifiers.items()}
    found = settings.model_copy(
        update={
            "inputs": inputs,
            "heldout": heldout,
            "decontaminate": settings.decontaminate.model_copy(update={"sets": sets}),
            "tokenizer": tokenizer,
            "urls": urls,
            "classifiers": classifiers,
            "perplexity": settings.perplexity and resolve(settings.perplexity),
            "lists": {name: resolve(path) for name, path in settings.lists.items()},
            "output": output,
        }
    )
    if tokenizer_exists and (message := without_tokenizer(path, found)):
        raise ConfigError(message)
    return found


def without_tokenizer(path: str | Path, settings: CorpusSettings) -> str:
    """What to say where there is no tokenizer yet; empty where there is."""
    file = settings.tokenizer.file
    if not file.endswith(TOKENIZER_FILES) or Path(file).exists():
        return ""
    return (
        f"{path}: key `tokenizer`: no such file {file}; make one with "
        f"`assay tokenizer train {path} --vocab-size 8000 --output {file}`"
    )
