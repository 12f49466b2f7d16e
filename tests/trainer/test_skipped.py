from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
import tiny_run
import yaml

from mixtures.batch import Skipped
from pipeline import files
from trainer import skipped
from trainer.settings import load_run


def test_a_run_over_damaged_windows_fails_or_names_what_it_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    tiny_run.make_data(data)
    tiny_run.use(data, monkeypatch.setattr)
    part = data / "packed" / "part-00000.arrow"
    reader = pa.ipc.open_file(str(part))
    assert reader.num_record_batches == 1
    flipped = bytearray(part.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    part.write_bytes(flipped)

    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(tiny_run.RUN))
    with pytest.raises(ValueError, match="part-00000.arrow is not as it was written"):
        tiny_run.train(path)
    path.write_text(yaml.safe_dump(tiny_run.RUN | {"on_damage": "skip"}))
    result = tiny_run.train(path)  # the same folder: the policy may change
    found = skipped.read(result.folder)
    windows = tiny_run.RUN["tokens"] // tiny_run.LENGTH
    assert [one.position for one in found] == list(range(windows))
    assert {(one.source, one.part) for one in found} == {("s", 0)}
    assert "part-00000.arrow is missing, or not as it was written" in found[0].why
    assert {loss for _, loss, _ in tiny_run.losses(result.folder)} == {0.0}  # all blank
    assert json.loads((result.folder / "run.json").read_text())["skipped"] == windows
    shutil.rmtree(result.folder)


def test_the_record_goes_back_with_the_run(tmp_path: Path) -> None:
    def window(position: int) -> Skipped:
        return Skipped(position, "s", 0, 9, "damaged")

    skipped.add(tmp_path, [window(3), window(1)])
    skipped.add(tmp_path, [])
    skipped.add(tmp_path, [window(5)])
    with open(tmp_path / skipped.FILE, "a") as file:
        file.write('{"position": 7, "sou')  # killed
    assert [one.position for one in skipped.read(tmp_path)] == [1, 3, 5]
    skipped.go_back(tmp_path, 5)
    assert skipped.read(tmp_path) == [window(1), window(3)]
    skipped.go_back(tmp_path, 0)
    assert skipped.read(tmp_path) == []


def test_a_kill_while_it_goes_back_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = [Skipped(at, "s", 0, 9, "damaged") for at in (1, 3)]
    skipped.add(tmp_path, windows)

    def killed(*paths: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(files.os, "replace", killed)
        skipped.go_back(tmp_path, 2)
    assert skipped.read(tmp_path) == windows
    skipped.go_back(tmp_path, 2)
    assert skipped.read(tmp_path) == windows[:1]
    assert [path.name for path in tmp_path.iterdir()] == [skipped.FILE]


def test_runs_of_before_this_key_go_on(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(tiny_run.RUN))
    assert load_run(path).on_damage == "fail"
