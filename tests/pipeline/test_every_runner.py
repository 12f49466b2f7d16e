"""Every runner that one machine can run makes the same corpus, byte for byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks import runners

SOAK = os.environ.get("ASSAY_SOAK") == "1"
SHORT = ("threads", "portable-pool")  # the others take 10 to 40 seconds each


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("runners")
    runners.make_inputs(folder)
    return folder, runners.prepare(folder, "inline")[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(runners.RECIPES) if SOAK else SHORT)
def test_the_same_corpus(name: str, plain: tuple[Path, dict[str, str]]) -> None:
    folder, wanted = plain
    assert len(wanted) > 50
    try:
        found = runners.prepare(folder, name)[1]
    except runners.Unavailable as reason:
        pytest.skip(str(reason))
    assert found == wanted
