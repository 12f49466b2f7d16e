"""Shards: files gather, stay as they are, and never stand twice."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pipeline import planning
from pipeline.config import ConfigError
from pipeline.files import read_json
from pipeline.inputs import input_files
from pipeline.planning import plan_shards
from pipeline.settings import CorpusSettings, Input, Tokenizer
from pipeline.shards import Key, load_shards


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


def test_a_source_whose_files_are_gone_names_the_way_out(tmp_path: Path) -> None:
    """Its last file vanished; the way that is named drops what was made of it."""
    files = write(tmp_path, {"a.jsonl": 400})
    plan_shards(tmp_path / "r", files | {("t", "b.jsonl"): files["s", "a.jsonl"]}, 1000)
    inputs = (Input(source="s", files=f"{tmp_path}/b*.jsonl"),)
    gone = CorpusSettings(inputs=inputs, tokenizer=Tokenizer(file="deepseek"))
    message = r"source 's': no file matches .*; if its files are gone for good, take it out of"
    with pytest.raises(ConfigError, match=message):
        input_files(gone)
    with pytest.raises(ConfigError, match=r"\(source t\): no longer among the inputs\n.*--refresh"):
        plan_shards(tmp_path / "r", files, 1000)
    plan_shards(tmp_path / "r", files, 1000, refresh=True)
    assert cover(tmp_path / "r") == [(0, "a.jsonl", 0)]


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


def test_a_shard_holds_so_many_files_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MAX_PIECES", 3)
    files = write(tmp_path, {f"{i}.jsonl": 100 for i in range(7)})
    plan_shards(tmp_path / "r", files, 10_000)
    assert [len(shard.pieces) for shard in load_shards(tmp_path / "r")] == [3, 3, 1]


def test_shards_of_a_large_compressed_file_that_are_gone_are_cut_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(b'{"text":"%d"}\n' % i for i in range(2_000))))
    files = {("s", "a.jsonl.gz"): str(path)}
    before = plan_shards(tmp_path / "r", files, 5_000)
    assert [shard.text_bytes for shard in before][:3] == [5_005, 5_010, 5_003]
    pieces = [piece for shard in before for piece in shard.pieces]
    assert all(piece.spilled and Path(piece.path).exists() for piece in pieces)
    assert sum(piece.num_bytes for piece in pieces) == 10 * 13 + 90 * 14 + 900 * 15 + 1_000 * 16
    Path(pieces[3].path).unlink()
    assert plan_shards(tmp_path / "r", files, 5_000) == before
    assert all(Path(piece.path).exists() for piece in pieces)


def test_what_inputs_json_keeps_of_a_piece(tmp_path: Path) -> None:
    files = write(tmp_path, {"a.jsonl": 400, "b.jsonl": 1_500})
    plan_shards(tmp_path / "r", files, 1_000)
    stored = read_json(tmp_path / "r" / "inputs.json")["shards"]
    assert [shard["pieces"] for shard in stored] == [
        [{"file": "a.jsonl", "end": 400, "num_bytes": 400}],
        [{"file": "b.jsonl", "end": 1_000, "num_bytes": 1_000}],
        [{"file": "b.jsonl", "begin": 1_000, "end": 1_500, "base": 1_000, "num_bytes": 500}],
    ]
