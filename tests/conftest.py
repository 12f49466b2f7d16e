"""Settings of all tests."""

from __future__ import annotations

import signal
from pathlib import Path

import edited_corpus
import pytest
from hypothesis import settings

# The first example of a kernel's test compiles it: seconds, not the 200 ms that hypothesis allows.
settings.register_profile("assay", deadline=None)
settings.load_profile("assay")

# A shell starts what it puts into the background with Ctrl-C ignored, and children inherit that: a
# build server may too. What is tested is what happens at a terminal.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def corpus_with_edits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See edited_corpus.py. Tests read it and copy it, never write to it."""
    return edited_corpus.prepare(tmp_path_factory.mktemp("with-edits"))
