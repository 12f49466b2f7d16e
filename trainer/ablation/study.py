"""study.yaml: one question, and the runs that answer it. Every key is documented where it stands.

An arm is the base with declared changes and nothing else: dotted keys into mixture.yaml or
run.yaml. Each arm runs once per seed; a seed sets the initial weights and the order of the data,
and arms share their seeds, so that differences are paired.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from mixtures.published import is_published
from mixtures.spec import Mixture, Name, load_mixture
from pipeline.config import ConfigError, Model, Settings, check, load
from pipeline.corpus import manifest
from pipeline.files import read_json
from pipeline.fingerprint import code, fingerprint, versions
from pipeline.finished import home, standing
from trainer.settings import FREE_KEYS, RunSettings, load_run

CODE = ("trainer.loop", "trainer.evaluate")  # modules that, with all they import, make the loss
LIBRARIES = ("numpy", "torch")
ROWS = ("all", "language")  # rows of the report have these names
SET_BY_STUDY = {"mixture": ("seed",), "run": ("mixture", "output", "seed")}


class Base(Settings):
    """What all arms share; paths relative to study.yaml."""

    mixture: str
    run: str


class Arm(Settings):
    """Declared differences from the base: dotted keys, `sources.web.where: "..."`."""

    mixture: dict[str, Any] = Field(default_factory=dict)  # into mixture.yaml
    run: dict[str, Any] = Field(default_factory=dict)  # into run.yaml


class Primary(Settings):
    """The one number that decides, fixed before the runs."""

    metric: Literal["bits_per_byte"] = "bits_per_byte"
    # language -> its weight; they need not sum to 1, as the weights of sources need not
    languages: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(min_length=1)
    sets: Literal["all"] | tuple[str, ...] = "all"  # held-out sets that count

    def shares(self) -> dict[str, float]:
        """Share of each language in the deciding number; they sum to 1."""
        total = sum(self.languages.values())
        return {name: weight / total for name, weight in self.languages.items()}


def _nothing_is_empty(value: object) -> object:
    return {} if value is None else value


class StudySettings(Settings):
    """study.yaml."""

    question: str = Field(min_length=1)  # stands on top of the report
    base: Base
    arms: dict[Name, Annotated[Arm, BeforeValidator(_nothing_is_empty)]]  # the first: the baseline
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**31)], ...]  # at least 3 for a verdict
    primary: Primary
    output: str | None = None  # folder of the study; default: runs/studies/<name of the yaml file>
    workers: int = Field(1, ge=1)  # runs at a time; CPU threads are divided among them

    @field_validator("arms")
    @classmethod
    def _two_arms(cls, arms: dict[str, Arm]) -> dict[str, Arm]:
        if len(arms) < 2:
            raise ValueError("a study compares at least two arms; the first is the baseline")
        for name in arms:
            if name in ROWS:
                raise ValueError(
                    f"an arm may not be called `{name}`, as rows of the report are; another name, "
                    f"for instance `{name}-data`"
                )
        return arms

    @field_validator("seeds")
    @classmethod
    def _distinct_seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if not seeds or len(set(seeds)) < len(seeds):
            raise ValueError("give each seed once, for instance [1, 2, 3]")
        return seeds


@dataclass(frozen=True)
class Run:
    """One training run: an arm under a seed. `mixture` and `run` are complete settings."""

    arm: str
    seed: int
    folder: Path
    mixture: dict[str, Any]
    run: dict[str, Any]
    key: str  # hash of all that changes its loss


@dataclass(frozen=True)
class Study:
    """A study whose arms are checked and resolved."""

    path: Path
    settings: StudySettings
    folder: Path
    runs: tuple[Run, ...]  # arm by arm, in the order of the file

    @property
    def baseline(self) -> str:
        return next(iter(self.settings.arms))

    def runs_of(self, arm: str) -> list[Run]:
        return [run for run in self.runs if run.arm == arm]


def load_study(path: str | Path) -> Study:
    """Read and check study.yaml, its base and its arms; writes nothing.

    Raises:
        ConfigError: a file, key or value that cannot be used, or two arms that are the same.
    """
    path = Path(path)
    settings = load(path, StudySettings)
    base = path.resolve().parent
    folder = base / (settings.output or f"runs/studies/{path.stem}")
    mixture_path = base / settings.base.mixture
    if is_published(settings.base.mixture) or mixture_path.is_dir():
        raise ConfigError(
            f"{path}: key `base.mixture`: {settings.base.mixture} is a published plan; arms are "
            "changes of a mixture, so name a mixture.yaml, and run the study where its corpora are"
        )
    mixture = load_mixture(mixture_path).model_dump(mode="json", by_alias=True)
    mixture["corpora"] = {k: str(home(Path(v))) for k, v in mixture["corpora"].items()}
    run = load_run(base / settings.base.run).model_dump(mode="json")
    arms = {
        name: _arm(path, name, arm, mixture, run, mixture_path.parent)
        for name, arm in settings.arms.items()
    }
    roots = {root for changed, _ in arms.values() for root in changed["corpora"].values()}
    corpora = {root: _contents(Path(root)) for root in roots}
    runs: list[Run] = []
    for name, (arm_mixture, arm_run) in arms.items():
        for seed in settings.seeds:
            seeded = {**arm_mixture, "seed": seed}
            settled = {**arm_run, "seed": seed, "mixture": "mixture.yaml", "output": "."}
            key = _key(seeded, settled, corpora)
            runs.append(Run(name, seed, folder / name / f"seed-{seed}", seeded, settled, key))
    _refuse_same_arms(path, runs)
    return Study(path, settings, folder, tuple(runs))


def _arm(
    path: Path,
    name: str,
    arm: Arm,
    mixture: dict[str, Any],
    run: dict[str, Any],
    mixture_folder: Path,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Complete mixture and run settings of an arm."""
    place = f"{path}: arm `{name}`"
    for part, changes in (("mixture", arm.mixture), ("run", arm.run)):
        for key in set(changes) & set(SET_BY_STUDY[part]):
            raise ConfigError(f"{place}: key `{part}.{key}` is set by the study, for every run")
    changed = _changed(mixture, arm.mixture, Mixture, f"{place}, mixture")
    settled = _changed(run, arm.run, RunSettings, f"{place}, run")
    result = changed.model_dump(mode="json", by_alias=True)
    result["corpora"] = {k: str(mixture_folder / v) for k, v in changed.corpora.items()}
    return result, settled.model_dump(mode="json")


def _changed(
    base: dict[str, Any], changes: dict[str, Any], model: type[Model], place: str
) -> Model:
    """`base` with dotted keys replaced; the last part of a key may be new, its parents may not."""
    result = base
    for key, value in changes.items():
        result = _replaced(result, key.split("."), value, key, place)
    return check(result, model, place)


def _replaced(
    base: dict[str, Any], parts: list[str], value: Any, key: str, place: str
) -> dict[str, Any]:
    first, *rest = parts
    if not rest:
        return {**base, first: value}
    inner = base.get(first)
    if not isinstance(inner, dict):
        nested = [name for name, below in base.items() if isinstance(below, dict)]
        near = difflib.get_close_matches(first, nested, n=1, cutoff=0.5)
        before = key.split(".")[: -len(parts)]
        hint = (
            f"did you mean `{'.'.join([*before, near[0], *rest])}`?"
            if near
            else f"keys with keys below them here: {', '.join(nested) or 'none'}"
        )
        raise ConfigError(f"{place}: unknown key `{key}` (value {value!r}); {hint}")
    return {**base, first: _replaced(inner, rest, value, key, place)}


def _key(mixture: dict[str, Any], run: dict[str, Any], corpora: dict[str, str]) -> str:
    """Hash of all that changes the loss or the scores: data, settings, code, libraries."""
    contents = {name: corpora[root] for name, root in mixture["corpora"].items()}
    settings = {k: v for k, v in run.items() if k not in FREE_KEYS or k == "evaluate"}
    return fingerprint(
        {**mixture, "corpora": contents}, settings, [code(m) for m in CODE], versions(LIBRARIES)
    )


def _contents(root: Path) -> str:
    """Hash of what a finished corpus holds, by its commit records; a moved corpus keeps it."""
    root = standing(root)
    manifest(root)  # refuses what is no finished corpus
    records = sorted((root / "stats").rglob("part-*.json"))
    outputs = [sorted(read_json(record)["outputs"].items()) for record in records]
    held = [[(name, {k: o[k] for k in ("bytes", "xxh3")}) for name, o in of] for of in outputs]
    return fingerprint(*held)


def _refuse_same_arms(path: Path, runs: list[Run]) -> None:
    seen: dict[str, Run] = {}
    for run in runs:
        twin = seen.setdefault(run.key, run)
        if twin.arm != run.arm:
            raise ConfigError(
                f"{path}: arms `{twin.arm}` and `{run.arm}` are the same: nothing that changes the "
                "loss differs between them; change a key of one, or leave it out"
            )


def require_held_out(study: Study, present: set[tuple[str, str]]) -> None:
    """Do nothing when `present`, held-out (set, language), holds all that `primary` asks for.

    Raises:
        ConfigError: a set or language is missing; the nearest name stands in the message.
    """
    primary = study.settings.primary
    names = {name for name, _ in present}
    wanted = names if primary.sets == "all" else set(primary.sets)
    spoken = {language for name, language in present if name in wanted}
    asked = (("set", sorted(wanted), names), ("language", primary.languages, spoken))
    for kind, values, known in asked:
        for value in values:
            if value not in known:
                near = difflib.get_close_matches(value, known, n=1, cutoff=0.5)
                listed = f"known: {', '.join(sorted(known)) or 'none'}"
                raise ConfigError(
                    f"{study.path}: key `primary.{kind}s`: no held-out text in {kind} {value!r}; "
                    + (f"did you mean {near[0]!r}?" if near else listed)
                )


def changes(arm: Arm) -> dict[str, Any]:
    """All declared differences of an arm, as `mixture.sources.web.where: value`."""
    return {
        f"{part}.{key}": value
        for part, keys in (("mixture", arm.mixture), ("run", arm.run))
        for key, value in keys.items()
    }
