"""A forked `assay` is told, and tells, what one that starts from nothing would."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import ready_assay


def test_each_call_has_a_folder_streams_and_a_code_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "corpus.yaml").write_text("inputs: 3\n")
    monkeypatch.chdir(tmp_path)
    forked = ready_assay.run("prepare", "corpus.yaml"), ready_assay.run("--help")
    monkeypatch.setenv("READ_WHEN_MODULES_LOAD", "perhaps")

    def refuse() -> None:
        raise AssertionError("another environment: no fork of what has loaded already")

    monkeypatch.setattr(ready_assay, "_server", refuse)
    fresh = ready_assay.run("prepare", "corpus.yaml"), ready_assay.run("--help")
    assert [_all(done) for done in forked] == [_all(done) for done in fresh]
    assert [done.returncode for done in forked] == [2, 0]
    assert "corpus.yaml" in forked[0].stderr
    assert forked[1].stderr == ""


def _all(done: subprocess.CompletedProcess[str]) -> tuple[list[str], int, str, str]:
    return done.args, done.returncode, done.stdout, done.stderr
