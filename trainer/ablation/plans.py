"""The plan of every arm before anything is trained: an arm that cannot run is refused here.

A plan reads a few columns of the corpora once, seconds an arm. Without it, a predicate that the
third arm cannot use is found when two arms have been trained.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow.parquet as pq

from mixtures.plan import Plan, plan_selection
from mixtures.select import Selection, select
from mixtures.spec import Mixture
from pipeline.config import ConfigError, check
from pipeline.corpus import CorpusError
from pipeline.fingerprint import fingerprint
from pipeline.syntax import SqlError
from trainer.ablation.study import Study, require_held_out
from trainer.metrics import Progress


def plan_arms(study: Study, arms: Collection[str], progress: Progress) -> dict[str, Plan]:
    """What each arm trains on, under the first seed; arms that select alike select once.

    Raises:
        ConfigError: an arm cannot run, or its held-out sets lack what `primary` asks for.
    """
    selections: dict[str, Selection] = {}
    plans: dict[str, Plan] = {}
    for number, arm in enumerate(arms, 1):
        progress.update(f"planning arm {number} of {len(arms)}: {arm}")
        run = study.runs_of(arm)[0]
        mixture = check(run.mixture, Mixture, f"{study.path}: arm `{arm}`, mixture")
        require_held_out(study, _held_out(mixture))
        try:
            key = _selected_by(mixture)
            if key not in selections:
                selections[key] = select(mixture)
            plans[arm] = plan_selection(mixture, selections[key], run.run["tokens"], write=False)
        except (ConfigError, CorpusError, SqlError) as error:
            raise ConfigError(f"{study.path}: arm `{arm}`: {error}") from None
    return plans


def _held_out(mixture: Mixture) -> set[tuple[str, str]]:
    """(set, language) of all held-out text of the corpora of a mixture."""
    found: set[tuple[str, str]] = set()
    for root in mixture.corpora.values():
        path = Path(root) / "heldout" / "documents.parquet"
        if path.exists():
            table = pq.read_table(path, columns=["set", "language"])
            found |= set(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return found


def _selected_by(mixture: Mixture) -> str:
    """Hash of the keys that decide which documents a mixture selects: not how much of them."""
    settings = mixture.model_dump(mode="json", exclude={"sequence_length"})
    for source in settings["sources"].values():
        del source["weight"], source["max_epochs"], source["epochs"]
    if all(source.repeats_by is None for source in mixture.sources.values()):
        del settings["seed"]  # which deals out fractions of `repeats_by`
    return fingerprint(settings)
