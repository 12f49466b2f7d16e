"""What is loaded before workers are forked holds every kernel that a worker calls."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import small_corpus

SOAK = os.environ.get("ASSAY_SOAK") == "1"


@pytest.mark.slow
@pytest.mark.skipif(not SOAK, reason="compiles all kernels anew, 35 CPU seconds: ASSAY_SOAK=1")
def test_workers_compile_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = small_corpus.write_inputs(tmp_path)
    tokenizer = ["--vocab-size", "600", "--output", str(tmp_path / "tokenizer.json")]
    small_corpus.assay("tokenizer", "train", settings, *tokenizer)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    first = small_corpus.assay("prepare", settings, "--workers", "2")
    assert "kernels are compiled first, once a machine" in first.stderr
    compiled = list((tmp_path / "cache").rglob("*.nbc"))
    warmed = next((tmp_path / "cache" / "assay" / "warm").iterdir()).stat().st_mtime_ns
    later = {path.name.split("-")[0] for path in compiled if path.stat().st_mtime_ns > warmed}
    assert len(compiled) > 90
    assert later <= {"selection._keep"}  # of the command itself: which near duplicates stay
