"""Stands in for `assay train`: writes the records of a run without training one.

The held-out losses are a fixed function of (arm, seed, item), so that reports can be checked.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

run_yaml = Path(sys.argv[1])
folder = run_yaml.parent
run = yaml.safe_load(run_yaml.read_text())
mixture = yaml.safe_load((folder / run["mixture"]).read_text())
with open(folder.parent.parent / "calls.txt", "a") as calls:
    calls.write(f"{folder.parent.name}/{folder.name}\n")
print("training", folder)
if os.environ.get("FAKE_FAIL") == f"{folder.parent.name}/{folder.name}":
    sys.exit("loss is not a number at step 3")

rng = np.random.default_rng(run["seed"])
gain = {"none": 0.0, "near": -0.05, "exact": 0.02}[mixture["unique"]]  # bits per byte
learning = gain if run["learning_rate"] == 3e-3 else -gain
items = [
    (name, language, number)
    for name, language in (("web/en/pages", "en"), ("web/zh/页面 & <b>", "zh"))
    for number in range(8)
]
sizes = np.array([100 + 17 * number for _, _, number in items])
bits = 2.0 + 0.1 * np.arange(len(items)) + 0.01 * rng.standard_normal(len(items))
arm = np.random.default_rng([run["seed"], ord(mixture["unique"][2])])
bits += learning + 0.004 * arm.standard_normal() + 0.01 * arm.standard_normal(len(items))
if "FAKE_SPLIT" in os.environ:  # the gain turns into a loss on Chinese
    bits -= np.array([2 * learning if language == "zh" else 0 for _, language, _ in items])
pq.write_table(
    pa.table(
        {
            "step": [100] * len(items),
            "set": [name for name, _, _ in items],
            "language": [language for _, language, _ in items],
            "source": ["pages"] * len(items),
            "content_hash": pa.array(
                [f"{language}{number:014d}".encode() for _, language, number in items],
                pa.binary(16),
            ),
            "nats": bits * sizes * np.log(2),
            "num_bytes": sizes,
            "num_tokens": sizes // 4,
        }
    ),
    folder / "evaluations.parquet",
)
with open(folder / "metrics.jsonl", "w") as metrics:
    for step in range(1, 101):
        tokens = step * run["tokens"] // 100
        loss = 9.0 * step**-0.15 + 0.02 * float(rng.standard_normal()) + learning
        metrics.write(json.dumps({"step": step, "tokens": tokens, "loss": loss}) + "\n")
copies, near = (0, 0) if mixture["unique"] == "none" else (200, 100)
source = {
    "name": "pages",
    "claimed": 1200,
    "copies": copies,
    "near": near,
    "documents": 1200 - copies - near,
    "num_tokens": 400_000 if mixture["unique"] == "none" else 310_000,
    "epochs": 2.5,
}
(folder / "plan.json").write_text(json.dumps({"heldout": 50, "sources": [source]}))
(folder / "run.json").write_text(
    json.dumps(
        {
            "parameters": 361_000,
            "versions": {"assay": "0.1.0", "torch": "2.13.0"},
            "device": "cpu",
            "processes": 1,
        }
    )
)
