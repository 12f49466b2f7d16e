"""Runs with another objective than the next token, by way of the loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_run


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": "prefix_lm"},
        {"objective": {"prefix_lm": {"least": 0.5}}, "model": {"encoder_depth": 1}},
        {
            "z_loss": 1e-4,
            "learning_rate": 0.03,
            "model": {"qk_norm": True, "base_width": 8, "base_depth": 1},
        },
    ],
)
def test_a_run_learns(
    changes: dict[str, Any], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = {**tiny_run.RUN["model"], **changes.get("model", {})}
    path = tmp_path / "run.yaml"
    path.write_text(json.dumps({**tiny_run.RUN, **changes, "model": model, "output": "run"}))
    tiny_run.use(data, monkeypatch.setattr)
    tiny_run.train(path)
    losses = [loss for _, loss, _ in tiny_run.losses(tmp_path / "run")]
    assert len(losses) == 20
    assert sum(losses[-5:]) / 5 < losses[0] - 0.1
