from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_run
import yaml


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data, which runs of this process train on."""
    tiny_run.make_data(tmp_path / "data")
    tiny_run.use(tmp_path / "data", monkeypatch.setattr)
    return tmp_path / "data"


@pytest.fixture
def run_yaml(tmp_path: Path) -> Callable[..., Path]:
    """(name, changes) -> a run.yaml of 20 short steps; its folder is runs/<name>."""

    def write(name: str, **changes: Any) -> Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump({**tiny_run.RUN, **changes}))
        return path

    return write
