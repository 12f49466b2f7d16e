"""The wheel that workers elsewhere install: complete, and able to work without this checkout."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from benchmarks import worker_start

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("kernels", "filters", "dedup", "pipeline", "mixtures", "trainer")
START = "import pipeline.workers; print(pipeline.__file__)"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worker_start.built(tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True
    )
    committed = {
        name
        for name in listed.stdout.splitlines()
        if not name.endswith(".md") and (ROOT / name).exists()
    }
    with zipfile.ZipFile(wheel) as archive:
        assert committed - set(archive.namelist()) == set()
    assert "filters/models/lid.176.ftz" in committed


@pytest.mark.slow
def test_a_clean_environment_works_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """An environment that holds the wheel and, by path, what it depends on; not this checkout."""
    python, variables = worker_start.environment(wheel, tmp_path / "venv")
    done = subprocess.run(
        [python, "-c", START], cwd=tmp_path, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "venv")
