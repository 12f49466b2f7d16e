"""The lock, and what is no corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import corpus
from pipeline.files import write_json


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with corpus.locked(tmp_path):
        with pytest.raises(
            corpus.CorpusError, match=r"another assay process writes here \(process"
        ):
            with corpus.locked(tmp_path):
                raise AssertionError("two writers")
    with corpus.locked(tmp_path):
        pass


def test_manifest_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(corpus.CorpusError, match="not a corpus"):
        corpus.manifest(tmp_path)
    write_json(tmp_path / "inputs.json", {})
    with pytest.raises(corpus.CorpusError, match="unfinished corpus"):
        corpus.manifest(tmp_path)
    write_json(tmp_path / "corpus.json", {"format": 99})
    with pytest.raises(corpus.CorpusError, match="format 99, this version of assay reads 2"):
        corpus.manifest(tmp_path)
