"""Turns: each number once, whoever takes it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pipeline import turns


def test_numbers_are_handed_out_once(tmp_path: Path) -> None:
    with turns.fresh(tmp_path), ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda _: list(turns.take(tmp_path, "a", 100)), range(4)))
        assert sorted(number for numbers in taken for number in numbers) == list(range(100))
        assert list(turns.take(tmp_path, "a", 100)) == []
        assert list(turns.take(tmp_path, "b", 2)) == [0, 1]
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "turns").mkdir()
    (tmp_path / "turns" / "a").write_text("7")
    with turns.fresh(tmp_path):
        assert list(turns.take(tmp_path, "a", 2)) == [0, 1]
