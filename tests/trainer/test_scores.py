"""Bits per byte are sums by sums; what evaluations.parquet keeps of a run."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trainer.scores import EVALUATIONS, Score, bits_per_byte, keep_scores, kept_scores, scores_by


def test_the_figure_is_a_ratio_of_sums() -> None:
    """torchtitan #4167: the mean of 2/1 and 90/9 is 6, the figure is 9.2."""
    ln2 = math.log(2)
    table = _scores(("a", "en", 1, 2 * ln2, 1), ("a", "zh", 2, 90 * ln2, 9), ("b", "zh", 3, 0, 0))
    assert bits_per_byte(table) == {"a": pytest.approx(9.2)}
    assert bits_per_byte(table, "language") == {"en": pytest.approx(2), "zh": pytest.approx(10)}


def test_a_text_in_two_sets_counts_once_in_its_language() -> None:
    ln2 = math.log(2)
    table = _scores(("a", "en", 1, 2 * ln2, 1), ("b", "en", 1, 2 * ln2, 1), ("b", "en", 2, ln2, 2))
    assert bits_per_byte(table) == {"a": pytest.approx(2), "b": pytest.approx(1)}
    assert bits_per_byte(table, "language") == {"en": pytest.approx(1)}  # 5/4 when counted twice
    assert bits_per_byte(table, "source") == {"s": pytest.approx(1)}


def test_scores_count_documents_and_bytes() -> None:
    ln2 = math.log(2)
    table = _scores(("a", "en", 1, 2 * ln2, 1), ("b", "en", 1, 2 * ln2, 1), ("b", "en", 3, 0, 0))
    assert scores_by(table, "set") == {"a": Score(2.0, 1, 1), "b": Score(2.0, 1, 1)}
    assert scores_by(table, "language") == {"en": Score(2.0, 1, 1)}


def _scores(*rows: tuple[str, str, int, float, int], step: int = 1) -> pa.Table:
    names = ("set", "language", "content_hash", "nats", "num_bytes")
    found = [
        {**dict(zip(names, row, strict=True)), "content_hash": bytes([row[2]] * 16)} for row in rows
    ]
    same = {"step": step, "source": "s", "num_tokens": 1}
    return pa.Table.from_pylist([{**same, **row} for row in found], schema=EVALUATIONS)


def test_scores_of_a_step_replace_those_of_the_same_step(tmp_path: Path) -> None:
    path = tmp_path / "evaluations.parquet"
    for step, nats in ((8, [1.0, 2.0]), (16, [3.0, 4.0]), (8, [5.0, 6.0])):
        keep_scores(path, _scores(*(("a", "en", n, nats[n], 9) for n in (0, 1)), step=step))
    table = pq.read_table(path)
    assert table.schema.equals(EVALUATIONS)
    assert list(zip(table["step"].to_pylist(), table["nats"].to_pylist(), strict=True)) == [
        (16, 3.0),
        (16, 4.0),
        (8, 5.0),
        (8, 6.0),
    ]
    assert kept_scores(path, 16).equals(table[:2])
    assert kept_scores(path, 7).equals(EVALUATIONS.empty_table())
    assert kept_scores(tmp_path / "none.parquet", 7).equals(EVALUATIONS.empty_table())
