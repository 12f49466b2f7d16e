"""corpus.yaml: what comes in, and how it is measured. Every key is documented where it stands."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from pipeline.amounts import Amount, NumBytes
from pipeline.config import ConfigError, Settings, load, suggestion
from pipeline.dedup_settings import Across, Near, Substrings, across_named
from pipeline.heldout_settings import Decontaminate, Heldout, TranslationGroup
from pipeline.kinds import Kind

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


class CorpusSettings(Settings):
    """corpus.yaml."""

    inputs: tuple[Input, ...] = Field(
        min_length=1, description='as in `inputs: [{source: forum, files: "forum/*.jsonl.gz"}]`'
    )
    output: str | None = None  # folder of the corpus; default: runs/<name of the yaml file>
    # Kept languages: [zh, en], or with the least score of each, {zh: 0.5, en: 0.65}. Held-out sets
    # are chosen of these, and `languages.pass` tells them in SQL; nothing is dropped.
    languages: Languages = ("zh", "en")
    tokenizer: Annotated[Tokenizer, BeforeValidator(_tokenizer)] = Field(
        description="write `tokenizer: tokenizer.json` and make that file with `assay tokenizer "
        "train`, or name one, as in `tokenizer: deepseek`"
    )
    heldout: Heldout = Heldout()
    # Parallel pages, as in {url: [[/en/, /zh/]]}, {hreflang: true} or {field: meta.page}: on one
    # side of a held-out split, and a column for `group` of a mixture; docs/mixtures.md
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
    # Evaluation sets: signal group and edits `contamination`; docs/decontamination.md
    decontaminate: Decontaminate = Decontaminate()
    # Lines and paragraphs that stand in several documents: names, as in [site_lines], or each with
    # settings of its own; docs/dedup.md, Lines and paragraphs
    across: Annotated[Across, BeforeValidator(across_named)] = Across()
    # Table, edits and signal group `substrings`; docs/dedup.md
    substrings: Substrings = Substrings()
    urls: Urls = Urls()  # signal group `urls`, where it names lists; docs/addresses.md
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
        told = self.translation_group
        key = "hreflang" if told and told.hreflang else "field"
        field = "meta.hreflang" if key == "hreflang" else told and told.field
        kept = {f"meta.{name}" for item in self.inputs for name in item.keep}
        if field and field not in kept:
            raise ValueError(
                f"key `translation_group.{key}`: no input keeps {field}; "
                + (
                    suggestion(field, kept)
                    if kept and key == "field"
                    else f"add {field.removeprefix('meta.')} to the `keep` of an input"
                )
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
