"""Shards: files gather, stay as they are, and never stand twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import ConfigError
from pipeline.shards import Key, load_shards, plan_shards


def write(folder: Path, sizes: dict[str, int]) -> dict[Key, str]:
    """JSONL files of about these sizes; returns them as input files of source `s`."""
    for name, size in sizes.items():
        line = f'{{"text": "{name}"}}\n'
        (folder / name).write_text(line * (size // len(line)))
    return {("s", name): str(folder / name) for name in sizes}


def cover(root: Path) -> list[tuple[int, str, int]]:
    return [(s.part, p.file, p.begin) for s in load_shards(root) for p in s.pieces]


def test_small_files_gather_and_large_ones_are_cut(tmp_path: Path) -> None:
    files = write(tmp_path, {"a.jsonl": 400, "b.jsonl": 400, "c.jsonl": 2500})
    plan_shards(tmp_path / "r", files, 1000)
    assert cover(tmp_path / "r") == [
        (0, "a.jsonl", 0),
        (0, "b.jsonl", 0),
        (1, "c.jsonl", 0),
        (2, "c.jsonl", 1000),
        (3, "c.jsonl", 2000),
    ]


def test_new_files_get_shards_of_their_own(tmp_path: Path) -> None:
    files = write(tmp_path, {"a.jsonl": 400})
    before = plan_shards(tmp_path / "r", files, 1000)
    files |= write(tmp_path, {"b.jsonl": 300})
    after = plan_shards(tmp_path / "r", files, 1000)
    assert after[:1] == before
    assert cover(tmp_path / "r") == [(0, "a.jsonl", 0), (1, "b.jsonl", 0)]


def test_refresh_drops_all_parts_that_a_changed_file_touches(tmp_path: Path) -> None:
    """b's tail shares a part with c: when c changes, all of b is cut anew, and stands once."""
    files = write(tmp_path, {"b.jsonl": 2300, "c.jsonl": 300, "d.jsonl": 900})
    plan_shards(tmp_path / "r", files, 1000)
    assert [part for part, file, _ in cover(tmp_path / "r") if file == "b.jsonl"] == [0, 1, 2]
    assert [part for part, file, _ in cover(tmp_path / "r") if file == "c.jsonl"] == [2]
    write(tmp_path, {"c.jsonl": 350})
    with pytest.raises(ConfigError, match=r"c.jsonl \(source s\): changed, .* bytes then"):
        plan_shards(tmp_path / "r", files, 1000)
    plan_shards(tmp_path / "r", files, 1000, refresh=True)
    found = cover(tmp_path / "r")
    assert [(part, begin) for part, file, begin in found if file == "b.jsonl"] == [
        (4, 0),
        (5, 1000),
        (6, 2000),
    ]
    assert sorted(file for _, file, _ in found) == ["b.jsonl"] * 3 + ["c.jsonl", "d.jsonl"]


def test_a_touched_or_moved_file_is_the_same_one_of_other_bytes_is_not(tmp_path: Path) -> None:
    files = write(tmp_path, {"a.jsonl": 300_000})
    before = plan_shards(tmp_path / "r", files, 1_000_000)
    moved = tmp_path / "moved.jsonl"
    (tmp_path / "a.jsonl").rename(moved)
    after = plan_shards(tmp_path / "r", {("s", "a.jsonl"): str(moved)}, 1_000_000)
    assert after[0].version == before[0].version
    assert after[0].pieces[0].path == str(moved)
    content = bytearray(moved.read_bytes())
    content[100_000:100_001] = b"x" if content[100_000] != ord("x") else b"y"
    moved.write_bytes(content)
    with pytest.raises(ConfigError, match="changed"):
        plan_shards(tmp_path / "r", {("s", "a.jsonl"): str(moved)}, 1_000_000)


def test_another_shard_size_cuts_everything_anew_under_new_numbers(tmp_path: Path) -> None:
    files = write(tmp_path, {"a.jsonl": 2000})
    plan_shards(tmp_path / "r", files, 1000)
    plan_shards(tmp_path / "r", files, 5000)
    assert cover(tmp_path / "r") == [(2, "a.jsonl", 0)]
