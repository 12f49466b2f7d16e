"""Do a model's labels say what people say: asked before anything is trained on them.

Kappa with quadratic weights (Cohen 1968) over the whole scores 0 to 5, with the interval of 1,000
bootstrap samples of the documents; Spearman's correlation of ranks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.config import ConfigError
from pipeline.keyed import read_keyed
from pipeline.learned.settings import ClassifierSettings, Hand
from pipeline.seeing import labels
from pipeline.seeing.agreement import weighted_kappa
from pipeline.seeing.rubrics import Rubric, rubric

SCORES = 6  # 0 to 5
RESAMPLES = 1_000
RUBRIC = "education"  # of labels that people gave in a corpus: 0 to 5
Values = npt.NDArray[np.floating]


def required(settings: ClassifierSettings) -> dict[str, Any] | None:
    """The agreement of all `labels` of the settings with those by hand; None: it has no labels.

    Raises:
        ConfigError: it is not shown to be as high as `hand` asks.
    """
    entries = (*settings.positive, *settings.negative)
    files = sorted({item.labels for item in entries if item.labels})
    if not files:
        return None
    assert settings.hand is not None
    hand = settings.hand
    given: dict[bytes, float] = {}
    for file in files:
        given |= scores(Path(file))
    found = agreement(given, scores(Path(hand.file), hand.rubric))
    _check(found, hand)
    return found


def _check(found: dict[str, Any], hand: Hand) -> None:
    low, high = found["kappa_interval"]
    if found["documents"] < hand.min_documents:
        raise ConfigError(
            f"{hand.file}: {found['documents']} of its documents have a label of the model, and "
            f"`hand.min_documents` is {hand.min_documents}; label more of them by hand"
        )
    if low < hand.min_kappa:
        raise ConfigError(
            f"labels and {hand.file} agree with a weighted kappa of {found['kappa']:.3f} (95 % "
            f"interval {low:.3f} to {high:.3f}) on {found['documents']} documents, and "
            f"`hand.min_kappa` asks for {hand.min_kappa:g}; mend the prompt, or label more by hand"
        )


def scores(file: Path, named: str = RUBRIC) -> dict[bytes, float]:
    """Content hash -> score of a file, rows without a score left out; or of a corpus whose
    documents people have labelled (`assay review`), by that rubric.

    Raises:
        ConfigError: there are none.
    """
    if file.is_dir():
        asked = rubric(named)
        if max(asked.keys.values()) != SCORES - 1:
            raise ConfigError(
                f"rubric {asked.id}: its labels end at {max(asked.keys.values()):g}, scores at "
                f"{SCORES - 1}; take labels of a rubric of 0 to {SCORES - 1}, such as {RUBRIC}"
            )
        return reviewed(file, asked)
    table = read_keyed(file, "content_hash")
    if "score" not in table.column_names:
        raise ConfigError(
            f"{file}: no column `score`; its columns: {', '.join(table.column_names)}"
        )
    pairs = zip(table["content_hash"].to_pylist(), table["score"].to_pylist(), strict=True)
    return {key: float(score) for key, score in pairs if score is not None}


def reviewed(corpus: Path, asked: Rubric) -> dict[bytes, float]:
    """Mean label of each content, over its reviewers.

    Raises:
        ConfigError: there is none.
    """
    given: dict[bytes, list[float]] = {}
    others = set()
    for row in labels.read(corpus).to_pylist():
        if row["rubric"] == asked.id:
            given.setdefault(bytes.fromhex(row["content_hash"]), []).append(row["label"])
        else:
            others.add(row["rubric"])
    if not given:
        known = f"; there are labels of {', '.join(sorted(others))}" if others else ""
        raise ConfigError(
            f"{corpus}: no labels of rubric {asked.id}{known}; make some with `assay review "
            f"{corpus} --rubric {asked.name}`"
        )
    return {content: sum(found) / len(found) for content, found in given.items()}


def agreement(ours: dict[bytes, float], hand: dict[bytes, float]) -> dict[str, Any]:
    """Kappa, its interval, Spearman and the share of equal scores, of what both have scored."""
    keys = sorted(ours.keys() & hand.keys())
    a = np.array([ours[key] for key in keys], dtype=np.float64)
    b = np.array([hand[key] for key in keys], dtype=np.float64)
    if len(keys) < 2:
        empty = {"kappa": 0.0, "kappa_interval": [-1.0, 1.0], "spearman": 0.0, "equal": 0.0}
        return {"documents": len(keys)} | empty
    rng = np.random.default_rng(17)
    picks = rng.integers(0, len(keys), (RESAMPLES, len(keys)))
    low, high = np.quantile([kappa(a[pick], b[pick]) for pick in picks], [0.025, 0.975])
    return {
        "documents": len(keys),
        "kappa": round(kappa(a, b), 4),
        "kappa_interval": [round(float(low), 4), round(float(high), 4)],
        "spearman": round(spearman(a, b), 4),
        "equal": round(float((_whole(a) == _whole(b)).mean()), 4),
    }


def kappa(a: Values, b: Values) -> float:
    """Of the whole scores."""
    return weighted_kappa(_whole(a), _whole(b))


def spearman(a: Values, b: Values) -> float:
    """Correlation of ranks, ties at their mean rank; 0 where one of both does not vary."""
    a, b = _ranks(a), _ranks(b)
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: Values) -> Values:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean: Values = (ends - (counts - 1) / 2)[place]
    return mean


def _whole(values: Values) -> Values:
    whole: Values = np.clip(np.round(values), 0, SCORES - 1)
    return whole
