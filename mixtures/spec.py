"""mixture.yaml: how much of what a run sees. Every key is documented where it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr, StringConstraints, field_validator, model_validator

from mixtures.copies import split_direction
from mixtures.extending import written_out
from mixtures.phases import Generation, Phase, fit, generations
from mixtures.sources import Source, require_predicate
from pipeline import copy_index, finished, store
from pipeline.amounts import Amount
from pipeline.config import ConfigError, Settings, checked, suggestion
from pipeline.corpus import manifest
from pipeline.dedup_settings import UNITS
from pipeline.objects import is_url

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Unique = Literal["none", "url", "exact", "folded", "near", "contained", "semantic"]


class Semantic(Settings):
    """When two texts mean the same: `unique: semantic`."""

    threshold: float = Field(gt=0, le=1)  # cosine; each model has its own: `assay dedup semantic`
    group: str = "semantic"  # of `assay embed`, or attached with a column `embedding`


class Mixture(Settings):
    """mixture.yaml."""

    extends: str | None = None  # another mixture, relative to this file, of which this one differs
    corpora: dict[Name, str] = Field(min_length=1)  # name -> folder, relative to this file, or URL
    # Whose tokens: a name or hash that `assay tokenize` shows; default: the first of the corpus
    tokenizer: str | None = None
    sequence_length: Amount = Field(ge=2, le=1_048_576)  # tokens of a window
    # Tokens of a packed window, a multiple of sequence_length: windows of several lengths are
    # stretches of the same files. Default: sequence_length
    packed_length: Amount | None = Field(None, ge=2, le=1_048_576)
    seed: int = Field(0, ge=0, lt=2**63)  # of the order of documents, and of windows
    # How documents lie in windows: layout.py. concat cuts every `sequence_length` tokens; best_fit
    # cuts no document that fits a window, and pads; buckets is concat by length
    packing: Literal["concat", "best_fit", "buckets"] = "concat"
    # Windows are shuffled among so many tokens of a source, in whole packed parts of 33.5M, and a
    # run packs and reads only the parts that it needs. Default: among all. A cache of what is on a
    # store has to hold so much of each source, and what comes next: docs/loader.md
    shuffle: Amount | None = Field(None, ge=1)
    unique: Unique = "near"  # over all sources of the mixture, after every `where`
    # Indexes of `assay dedup index`, folders or URLs: documents that are copies of one in them, as
    # `unique` has it, stay out, whatever `prefer` says
    not_in: tuple[str, ...] = ()
    semantic: Semantic | None = None
    prefer: tuple[str, ...] = ()  # which copy stays: SQL order; true before false, larger by `desc`
    edits: tuple[str, ...] = ()  # of the corpora, to be made; where two overlap the first counts
    sources: dict[Name, Source] = Field(min_length=1)
    overlap: Literal["error", "first"] = "error"  # a document that two sources select
    # What weights are shares of, as sources are left of copies, capped and repeated: weighing.py
    weigh_by: Literal["tokens", "documents", "bytes"] = "tokens"
    # weight * size ** (1 / temperature): 1 in proportion to size, larger lift small sources. None:
    # sizes do not count. A tenth takes tenth powers: below that no share is left
    temperature: float | None = Field(None, ge=0.1, allow_inf_nan=False)
    # A source that has less than its share in `max_epochs`; `unimax`: others take over the rest
    short: Literal["error", "unimax"] = "error"
    phases: tuple[Phase, ...] = ()
    _file: str = PrivateAttr("")  # where it was read from, for messages

    @field_validator("prefer")
    @classmethod
    def _are_expressions(cls, prefer: tuple[str, ...]) -> tuple[str, ...]:
        for expression in prefer:
            require_predicate(split_direction(expression)[0])
        return prefer

    @model_validator(mode="after")
    def _windows_fit(self) -> Mixture:
        if (self.packed_length or self.sequence_length) % self.sequence_length:
            length, whole = self.sequence_length, self.packed_length
            raise ValueError(
                f"`packed_length: {whole}` is no multiple of `sequence_length: {length}`; take one "
                f"that {length} divides, such as {-(-(whole or 0) // length) * length}"
            )
        return self

    @model_validator(mode="after")
    def _corpora_are_known(self) -> Mixture:
        for name, source in self.sources.items():
            if source.corpus not in self.corpora:
                hint = suggestion(source.corpus, self.corpora)
                raise ValueError(f"source {name!r}: no corpus {source.corpus!r}; {hint}")
        return self

    @model_validator(mode="after")
    def _semantic_has_a_threshold(self) -> Mixture:
        if (self.unique == "semantic") != (self.semantic is not None):
            raise ValueError(
                "`unique: semantic` and `semantic: {threshold: ...}` go together; `assay dedup "
                "semantic CORPUS` shows pairs by cosine, to choose one"
            )
        return self

    @model_validator(mode="after")
    def _phases_fit(self) -> Mixture:
        fit(self.phases, self._own(), self.sequence_length)
        return self

    @model_validator(mode="after")
    def _copies_are_known(self) -> Mixture:
        if self.not_in and self.unique == "none":
            raise ValueError(
                "`not_in` leaves out copies, and `unique: none` knows none; say what counts as a "
                "copy: `unique: near`, folded, exact or url"
            )
        return self

    @field_validator("edits")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError("a name stands twice; name each once")
        return names

    def told(self, message: object) -> str:
        """A message about this mixture, with its file before it."""
        return f"{self._file}: {message}" if self._file else str(message)

    def generations(self) -> list[Generation]:
        """The sources in the order in which phases begin to read them."""
        return generations(self.phases, self._own())

    def _own(self) -> dict[str, float]:
        return {name: source.weight for name, source in self.sources.items()}

    def weights(self) -> dict[str, float]:
        """Requested share of each source; they sum to 1."""
        total = sum(source.weight for source in self.sources.values()) or 1
        return {name: source.weight / total for name, source in self.sources.items()}


def sources_of(mixture: Mixture, root: Path) -> dict[str, Source]:
    """The sources that read the corpus at `root`.

    Raises:
        ConfigError: none does.
    """
    here = finished.home(root).resolve()
    names = {n for n, at in mixture.corpora.items() if finished.home(Path(at)).resolve() == here}
    found = {name: s for name, s in mixture.sources.items() if s.corpus in names}
    if not found:
        corpora = ", ".join(mixture.corpora.values())
        raise ConfigError(mixture.told(f"no source reads {here}, but {corpora}"))
    return found


def _require_edits(path: Path, mixture: Mixture, corpus: str, root: Path) -> None:
    """Refuse edits that a corpus does not have."""
    known = manifest(root).get("edits", []) if mixture.edits else []
    unknown = [name for name in mixture.edits if name not in known]
    if not unknown:
        return
    from filters.editors import EDITORS  # loads numba: 0.5 s, for this message alone

    name = unknown[0]
    hint = suggestion(name, known or EDITORS)
    if name == "contamination":
        hint = (
            "name evaluation sets (`decontaminate`) and `edits: [contamination]` in its "
            "corpus.yaml and call `assay prepare`"
        )
    elif name in UNITS:
        hint = (
            f"add `across: [{name}]` and `edits: [{', '.join([*known, name])}]` to its corpus.yaml "
            "and call `assay prepare`"
        )
    elif name == "substrings":
        hint = (
            "add `substrings: {min_bytes: 300}` and `edits: "
            f"[{', '.join([*known, name])}]` to its corpus.yaml and call `assay prepare`"
        )
    elif name in EDITORS:
        wanted = ", ".join([*known, name])
        hint = f"add `edits: [{wanted}]` to its corpus.yaml and call `assay prepare`"
    raise ConfigError(f"{path}: key `edits`: corpus {corpus!r} has no edits {name!r}; {hint}")


def load_mixture(path: str | Path) -> Mixture:
    """Read mixture.yaml; the folders of `corpora` are relative to its folder."""
    path = Path(path)
    mixture = checked(written_out(path), Mixture, path)
    base = path.resolve().parent
    corpora = {
        name: str(finished.standing(store.folder(place) if is_url(place) else base / place))
        for name, place in mixture.corpora.items()
    }
    for name, folder in corpora.items():
        if finished.begin(Path(folder)) is None:
            begun = Path(folder, "inputs.json").exists()
            raise ConfigError(
                f"{path}: key `corpora.{name}`: "
                + (f"the corpus at {folder} is not finished" if begun else f"no corpus at {folder}")
                + "; make one with `assay prepare corpus.yaml`"
            )
    for name in dict.fromkeys(source.corpus for source in mixture.sources.values()):
        _require_edits(path, mixture, name, Path(corpora[name]))
    not_in = [
        copy_index.fetched(place if is_url(place) else str(base / place))
        for place in mixture.not_in
    ]
    found = mixture.model_copy(
        update={"corpora": corpora}
        | ({"not_in": tuple(map(str, dict.fromkeys(not_in)))} if not_in else {})
    )
    found._file = str(path)
    return found
