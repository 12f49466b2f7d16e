"""The lock, and what is no corpus."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from pipeline import corpus
from pipeline.files import LOOK_SECONDS, is_held, write_json


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with corpus.locked(tmp_path):
        with pytest.raises(
            corpus.CorpusError, match=r"another assay process writes here \(process"
        ):
            with corpus.locked(tmp_path):
                raise AssertionError("two writers")
    with corpus.locked(tmp_path):
        pass


def test_who_looks_at_a_lock_keeps_nobody_out(tmp_path: Path) -> None:
    """`assay ls` holds it, shared, for some microseconds; on a busy machine for longer."""
    with corpus.locked(tmp_path):
        assert is_held(tmp_path / ".lock")
    assert not is_held(tmp_path / ".lock")
    with open(tmp_path / ".lock") as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        done = threading.Timer(LOOK_SECONDS, fcntl.flock, (looked_at, fcntl.LOCK_UN))
        done.start()
        with corpus.locked(tmp_path):
            done.join()


def test_manifest_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(corpus.CorpusError, match="not a corpus"):
        corpus.manifest(tmp_path)
    write_json(tmp_path / "inputs.json", {})
    with pytest.raises(corpus.CorpusError, match="unfinished corpus"):
        corpus.manifest(tmp_path)
    write_json(tmp_path / "corpus.json", {"format": 99})
    with pytest.raises(corpus.CorpusError, match="format 99, this version of assay reads 2"):
        corpus.manifest(tmp_path)
