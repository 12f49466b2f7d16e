"""The script for a GPU runs where only torch is installed; its checks hold on a CPU, tiny."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ABSENT = "pyarrow numba pydantic xxhash duckdb yaml scipy transformers tokenizers fsspec orjson"
RUN = f"""
import runpy, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {ABSENT.split()}:
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
sys.argv = ["gpu_check.py", "--smoke", "--peak-tflops", "0.1"]
runpy.run_path("benchmarks/gpu_check.py", run_name="__main__")
"""


def test_all_lines_hold_with_torch_alone() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].endswith("CPU, peak 0.1 TFLOP/s")
    assert [line.split()[0] for line in lines[1:]] == ["ok"] * 10
    assert re.search(r"125M +[\d,]+ tokens/s, MFU [\d.]+% \(all scores: [\d.]+%\)", lines[7])
    assert "transformers is not installed" in lines[8]
