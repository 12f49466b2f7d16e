"""Environments of peers, which want other versions than ours: made by pip at the first call, in
.cache/bench; BENCH_PEERS names another folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

DEFAULT = Path(__file__).resolve().parent.parent / ".cache" / "bench"


def environment(name: str, requirements: Sequence[str]) -> str:
    """The Python of an environment that has these."""
    folder = Path(os.environ.get("BENCH_PEERS", DEFAULT)) / name
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        print(f"making {folder}: a few minutes, once", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *requirements], check=True)
        (folder / ".ready").touch()
    return str(python)
