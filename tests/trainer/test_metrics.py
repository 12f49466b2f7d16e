"""metrics.jsonl across a kill, progress on a terminal and in a log, FLOPs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from pipeline.clock import clock
from trainer import metrics
from trainer.metrics import Progress, append_log, continue_log


def test_a_log_goes_on_where_the_checkpoint_stands(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert continue_log(path, 0) is None
    for step in (1, 2, 3):
        append_log(path, {"step": step, "loss": step / 3})
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"step": 4, "lo')  # killed while it wrote
    assert continue_log(path, 2) == {"step": 2, "loss": 2 / 3}
    lines = path.read_text("utf-8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2]
    assert continue_log(path, 0) is None
    assert path.read_text("utf-8") == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    now = [100.0]
    monkeypatch.setattr(metrics.time, "monotonic", lambda: now[0])
    progress = Progress(stream)
    for second in (0, 0.4, 1, 14, 16):
        now[0] = 100.0 + second
        progress.update(f"at {second}")
    progress.line("done")
    return stream.getvalue()


def test_a_log_gets_few_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(io.StringIO(), monkeypatch) == "at 0\nat 16\ndone\n"


def test_a_terminal_gets_one_line_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"\r\x1b[Kat {second}" for second in (0, 1, 14, 16))
    assert _shown(Terminal(), monkeypatch) == f"{lines}\ndone\n"


def test_progress_text() -> None:
    row = {"step": 12, "tokens": 400, "loss": 6.10344, "tokens_per_second": 200.0}
    text = metrics.progress_text(row, 30, 1000)
    assert text == "step 12/30  loss 6.1034 nats/token  0.2k tokens/s  0:03 left"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0:00"), (7, "0:07"), (750, "12:30"), (11_100, "3:05:00")]
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text
