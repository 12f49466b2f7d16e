from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from pipeline.config import ConfigError
from pipeline.learned.agreement import agreement, kappa, required, scores, spearman
from pipeline.learned.settings import load_classifier
from pipeline.seeing import labels


def test_kappa_by_hand() -> None:
    a, b = np.array([0.0, 1, 2, 3]), np.array([0.0, 1, 2, 5])
    # mean squared distance 1; over all pairs (14 + 30 - 2 * 6 * 8 / 4) / 4 = 5
    assert kappa(a, b) == pytest.approx(1 - 1 / 5)
    assert kappa(a, a) == 1
    assert kappa(np.array([0.0, 5]), np.array([5.0, 0])) == -1
    assert kappa(np.array([3.0, 3]), np.array([3.0, 3])) == 0  # who always says 3 says nothing
    assert kappa(np.array([2.4, 0.6]), np.array([2.0, 1])) == 1  # whole scores


def test_kappa_is_the_weighted_one_of_a_table() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 6, 500).astype(float)
    b = np.clip(a + rng.integers(-1, 2, 500), 0, 5)
    table = np.histogram2d(a, b, bins=6, range=((0, 6), (0, 6)))[0] / 500
    weights = (np.arange(6)[:, None] - np.arange(6)[None]) ** 2
    chance = table.sum(1)[:, None] * table.sum(0)[None]
    assert kappa(a, b) == pytest.approx(1 - (weights * table).sum() / (weights * chance).sum())


def test_spearman_is_that_of_scipy() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 6, 80).astype(float), rng.integers(0, 6, 80).astype(float)
    assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert spearman(np.ones(5), np.arange(5.0)) == 0


def test_of_what_both_have_scored() -> None:
    ours = {bytes([n]) * 16: float(n % 6) for n in range(120)}
    hand = {bytes([n]) * 16: float(n % 6) for n in range(60, 180)}
    found = agreement(ours, hand)
    assert found == {
        "documents": 60,
        "kappa": 1,
        "kappa_interval": [1, 1],
        "spearman": 1,
        "equal": 1,
    }
    assert agreement(ours, {})["documents"] == 0


def test_trained_only_where_it_is_shown(tmp_path: Path) -> None:
    def write(name: str, rows: dict[str, float]) -> None:
        lines = ["content_hash,score", *(f"{key},{score}" for key, score in rows.items())]
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    keys = [f"{n:032x}" for n in range(100)]
    write("labels.csv", {key: n % 6 for n, key in enumerate(keys)})
    write("good.csv", {key: min(n % 6 + (n % 5 == 0), 5) for n, key in enumerate(keys)})
    write("bad.csv", {key: n * 7 % 6 for n, key in enumerate(keys)} | {keys[1]: 5})
    write("wild.csv", {key: n // 7 % 6 for n, key in enumerate(keys)})
    write("few.csv", {key: n % 6 for n, key in enumerate(keys[:20])})

    def check(hand: str) -> float:
        path = tmp_path / "quality.yaml"
        labels = {"corpus": "runs/web", "labels": "labels.csv"}
        path.write_text(
            json.dumps(
                {
                    "positive": [labels | {"at_least": 3}],
                    "negative": [labels | {"at_most": 1}],
                    "hand": {"file": hand},
                    "output": "quality.bin",
                }
            )
        )
        found = required(load_classifier(path))
        assert found is not None
        return float(found["kappa"])

    assert check("good.csv") > 0.9
    with pytest.raises(ConfigError, match=r"kappa of -?0\.\d+ \(95 % interval .*asks for 0\.6"):
        check("wild.csv")
    with pytest.raises(ConfigError, match="20 of its documents have a label of the model"):
        check("few.csv")
    (tmp_path / "none.csv").write_text("content_hash,rating\n" + keys[10] + ",3\n")
    with pytest.raises(ConfigError, match="no column `score`; its columns: content_hash, rating"):
        scores(tmp_path / "none.csv")


def test_labels_of_a_review_are_labels_by_hand(tmp_path: Path) -> None:
    """The mean of two reviewers, of one rubric alone."""
    first, second = (bytes([n]) * 16 for n in (1, 2))
    labels.append(tmp_path, "ann", "education/1", {first.hex(): 3.0, second.hex(): 5.0})
    labels.append(tmp_path, "bob", "education/1", {first.hex(): 2.0})
    labels.append(tmp_path, "bob", "keep/1", {second.hex(): 0.0})
    assert scores(tmp_path) == {first: 2.5, second: 5.0}
    with pytest.raises(ConfigError, match=r"rubric keep/1: its labels end at 1, scores at 5"):
        scores(tmp_path, "keep")
    (tmp_path / "own.yaml").write_text("{name: own, question: q, keys: {'0': 0, '5': 5}}", "utf-8")
    with pytest.raises(ConfigError) as caught:
        scores(tmp_path, str(tmp_path / "own.yaml"))
    assert str(caught.value) == (
        f"{tmp_path}: no labels of rubric own/1; there are labels of education/1, keep/1; make "
        f"some with `assay review {tmp_path} --rubric own`"
    )
