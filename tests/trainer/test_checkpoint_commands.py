"""`assay checkpoint list` and `verify`: what they say and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_run import train

from pipeline.files import file_hash
from trainer import cli, saved

Write = Callable[..., Path]


def test_list_and_verify(
    data: Path, run_yaml: Write, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    keys = {"every": 8 * 4 * 32, "keep": 1, "keep_every": 8 * 4 * 32, "mirror": "copies"}
    folder = train(run_yaml("a", checkpoint=keys)).folder
    checkpoints = folder / "checkpoints"
    assert cli.main(["checkpoint", "verify", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        str(checkpoints / saved.name(step)) for step in (20, 16, 8)
    ]
    assert all(line.endswith(" bytes, every tensor can be read") for line in lines)

    part = checkpoints / saved.name(16) / "__0_0.distcp"
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert cli.main(["checkpoint", "verify", str(folder)]) == 2
    assert f"{part}: contents differ from the hash" in capsys.readouterr().out
    assert cli.main(["checkpoint", "verify", str(checkpoints / saved.name(8))]) == 0

    manifest = checkpoints / saved.name(16) / saved.MANIFEST  # a hash of what cannot be loaded
    known = json.loads(manifest.read_text())
    part.write_bytes(b"\0" * len(whole))
    known["files"][part.name]["xxh3_128"] = file_hash(part)
    manifest.write_text(json.dumps(known))
    capsys.readouterr()
    assert cli.main(["checkpoint", "verify", str(checkpoints / saved.name(16))]) == 2
    assert "as they were written, and cannot be loaded" in capsys.readouterr().out

    (checkpoints / saved.name(8) / ".metadata").unlink()
    assert cli.main(["checkpoint", "list", str(folder)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()][1:]
    assert [(row[0], row[1], row[-1]) for row in rows[:2]] == [
        (saved.name(20), "2,528", "yes"),
        (saved.name(16), "2,048", "yes"),
    ]
    assert rows[0][3:5] == ["complete", "latest"]
    assert rows[1][3:6] == ["complete", "for", "good"]
    assert "missing," in rows[2]


def test_a_place_without_any(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["checkpoint", "verify", str(tmp_path)]) == 2
    assert "holds no checkpoint, nor is it one" in capsys.readouterr().err
