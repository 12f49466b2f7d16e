"""What a run writes down while it runs: metrics.jsonl, progress for people."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from pipeline.clock import clock
from pipeline.files import replacing

PLAIN_SECONDS = 15.0  # between progress lines in a log
LIVE_SECONDS = 0.5  # between updates of the line on a terminal


def continue_log(path: Path, step: int) -> dict[str, Any] | None:
    """Cut metrics.jsonl back to the lines up to `step`, where a resumed run goes on.

    Returns its last line, None when nothing is left. A half-written last line goes too.
    """
    lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
    kept = [line for line in lines if json.loads(line)["step"] <= step]
    with replacing(path) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in kept), "utf-8")
    return json.loads(kept[-1]) if kept else None


def append_log(path: Path, row: dict[str, Any]) -> None:
    """Add one whole line."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


class Progress:
    """One line on a terminal, rewritten; plain lines, few of them, anywhere else."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty()
        self._shown = -PLAIN_SECONDS
        self._open = False  # whether a line on the terminal waits to be rewritten

    def update(self, text: str) -> None:
        """Show where the job stands, unless that was shown just now."""
        now = time.monotonic()
        if now - self._shown < (LIVE_SECONDS if self._live else PLAIN_SECONDS):
            return
        self._shown = now
        self._stream.write(f"\r\x1b[K{text}" if self._live else f"{text}\n")
        self._stream.flush()
        self._open = self._live

    def line(self, text: str) -> None:
        """Show a line that stays."""
        self._stream.write(f"{chr(10) if self._open else ''}{text}\n")
        self._stream.flush()
        self._open = False


def progress_text(row: dict[str, Any], num_steps: int, total_tokens: int) -> str:
    """`step 12/120  loss 6.1034 nats/token  21.9k tokens/s  0:03 left` from a line of metrics."""
    left = (total_tokens - row["tokens"]) / row["tokens_per_second"]
    used = f"MFU {row['mfu']:.1%}  " if "mfu" in row else ""
    return (
        f"step {row['step']}/{num_steps}  loss {row['loss']:.4f} nats/token  "
        f"{row['tokens_per_second'] / 1000:.1f}k tokens/s  {used}{clock(left)} left"
    )
