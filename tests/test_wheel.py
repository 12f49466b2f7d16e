"""The wheel that workers elsewhere install: complete, and able to work without this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("kernels", "filters", "dedup", "pipeline", "mixtures", "trainer")
# What a worker does until its first element is done: imports, models, kernels.
SOAK = os.environ.get("ASSAY_SOAK") == "1"
WARM = "import pipeline.warm" if SOAK else ""  # compiles all kernels: 20 CPU seconds
START = f"""
import time
began = time.perf_counter(), time.process_time()
import pipeline.workers
{WARM}
print(pipeline.__file__)
print(time.process_time() - began[1], "CPU seconds")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(["git", "clone", "-q", "--shared", ROOT, folder / "source"], check=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", folder, folder / "source"], check=True)
    return next(folder.glob("assay-*.whl"))


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
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = tmp_path / "venv" / "lib" / version / "site-packages"
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", START], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    where, seconds = done.stdout.splitlines()
    assert where == str(packages / "pipeline" / "__init__.py")
    print(f"worker start-up from the wheel: {seconds}")
