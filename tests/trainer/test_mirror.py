"""Checkpoints in a second place: copied, fetched where those here are gone, never in the way."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from tiny_run import losses, train

from pipeline import objects
from trainer import loop, mirror, saved
from trainer.metrics import Progress
from trainer.settings import load_run

Write = Callable[..., Path]
EVERY = {"every": 4 * 4 * 32, "keep": 2}


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    yield "copies" if request.param == "folder" else "memory://copies"
    MemoryFileSystem.store.clear()


def told(path: Path) -> list[str]:
    stream = io.StringIO()
    loop.train(load_run(path), progress=Progress(stream))
    return stream.getvalue().splitlines()


def unfinish(folder: Path) -> None:
    record = folder / "run.json"
    record.write_text(record.read_text().replace('"finished"', '"running"'))


def test_damaged_cut_short_or_gone_it_is_fetched(data: Path, run_yaml: Write, place: str) -> None:
    path = run_yaml("a", checkpoint={**EVERY, "mirror": place})
    folder = train(path).folder
    whole, checkpoints = losses(folder), folder / "checkpoints"
    there = mirror.place_of(load_run(path).checkpoint.mirror or "", folder)
    assert mirror.names(there) == ["step-00000020", "step-00000016"]
    newest = checkpoints / "step-00000020"
    part = newest / "__0_0.distcp"
    size = part.stat().st_size

    for damage, said in (
        (lambda: part.write_bytes(b"x" * size), f"{part}: contents differ from the hash in "),
        (lambda: part.write_bytes(b"x"), f"{part}: missing, or not {size} bytes long"),
        (lambda: shutil.rmtree(newest), "step-00000020 is not here"),
        (lambda: shutil.rmtree(checkpoints), "step-00000020 is not here"),
    ):
        damage()
        unfinish(folder)
        lines = told(path)
        assert lines[0].startswith(said)
        assert lines[0].endswith(f"; fetched from {there}")
        assert lines[1] == f"{folder}: goes on from step-00000020"
        assert saved.damage(newest) is None
    shutil.rmtree(folder)  # another machine
    lines = told(path)
    assert (
        lines[0] == f"{folder} holds no run; {there} does, which goes on here (--fresh starts over)"
    )
    assert losses(folder) == whole


def test_with_both_damaged_the_one_before_is_taken(
    data: Path, run_yaml: Write, tmp_path: Path
) -> None:
    path = run_yaml("a", checkpoint={**EVERY, "mirror": "copies"})
    folder = train(path).folder
    whole = losses(folder)
    copies = tmp_path / "copies" / "a"
    for place in (folder / "checkpoints", copies):
        (place / "step-00000020" / "__0_0.distcp").write_bytes(b"")
    unfinish(folder)
    lines = told(path)
    assert lines[0].startswith("passed over: ")
    assert f"{copies / 'step-00000020' / '__0_0.distcp'}: missing, or not " in lines[0]
    assert lines[1] == f"{folder}: goes on from step-00000016"
    assert losses(folder) == whole


def test_the_copy_of_a_run_that_went_back_stays(
    data: Path, run_yaml: Write, tmp_path: Path
) -> None:
    """Step 20 is damaged here and there, and looks good there: with `keep: 1` the mirror would
    delete step 16, the only one that is good. What is made anew replaces what is there."""
    path = run_yaml("a", checkpoint={**EVERY, "keep": 1, "mirror": "copies"})
    folder = train(path).folder
    place = str(tmp_path / "copies" / "a")
    newest, part = tmp_path / "copies" / "a" / "step-00000020", "__0_0.distcp"
    whole = (newest / part).read_bytes()
    for copy in (folder / "checkpoints" / "step-00000020", newest):
        (copy / part).write_bytes(b"x" * len(whole))
    shutil.copytree(newest, folder / "checkpoints" / "step-00000016")
    (folder / "checkpoints" / "latest").unlink()
    (folder / "checkpoints" / "latest").symlink_to("step-00000016")
    there = folder / "checkpoints" / "step-00000016"
    manifest = json.loads((there / "manifest.json").read_text())
    (there / part).write_bytes(whole)
    (there / "manifest.json").write_text(json.dumps(manifest))
    copier = mirror.Mirror(folder, place, 1, print)
    copier.finish()
    assert mirror.names(place) == ["step-00000020", "step-00000016"]
    (folder / "checkpoints" / "step-00000020" / part).write_bytes(whole)  # made anew
    copier.wake("step-00000020")
    copier.finish()
    copier.close()
    assert (newest / part).read_bytes() == whole


def test_what_a_killed_run_left_behind_is_copied(
    data: Path, run_yaml: Write, tmp_path: Path
) -> None:
    path = run_yaml("a", checkpoint={**EVERY, "mirror": "copies"})
    train(path)
    shutil.rmtree(tmp_path / "copies")  # killed before the last checkpoint was copied
    unfinish(tmp_path / "runs" / "a")
    train(path)
    there = mirror.names(str(tmp_path / "copies" / "a"))
    assert there == ["step-00000020", "step-00000016"]


def test_a_mirror_that_fails_stops_nothing(
    data: Path, run_yaml: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise OSError(5, "Input/output error", "memory://copies")

    path = run_yaml("a", checkpoint={**EVERY, "mirror": "memory://copies"})
    with monkeypatch.context() as patch:
        patch.setattr(objects, "upload", broken)
        lines = told(path)
    assert any("no copy of a checkpoint: [Errno 5] Input/output error" in line for line in lines)
    assert any(line.startswith("memory://copies/a has no copy of the last check") for line in lines)
    folder = path.parent / "runs" / "a"
    assert json.loads((folder / "run.json").read_text())["status"] == "finished"
    assert mirror.names("memory://copies/a") == []
    copier = mirror.Mirror(folder, "memory://copies/a", 2, print)  # as the next run has it
    copier.finish()
    copier.close()
    assert mirror.names("memory://copies/a") == ["step-00000020", "step-00000016"]
    MemoryFileSystem.store.clear()


def test_fresh_forgets_the_mirror_too(data: Path, run_yaml: Write, tmp_path: Path) -> None:
    train(run_yaml("a", checkpoint={**EVERY, "mirror": "copies"}))
    again = run_yaml("a", tokens=4 * 32, checkpoint={**EVERY, "mirror": "copies"})
    train(again, fresh=True)
    assert mirror.names(str(tmp_path / "copies" / "a")) == ["step-00000001"]
