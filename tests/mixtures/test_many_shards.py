"""Ten thousand shards: the first batch, and memory over epochs."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mixtures.plan import Plan, PlannedSource
from pipeline import schema
from pipeline.files import part_name, write_sealed

LENGTH, WINDOWS, SHARDS, FEW = 64, 4, 10_000, 1_000
# kB of the process's own (pages of mapped files are the system's), seconds of CPU, parts open
READ = """
import json, pickle, sys, time
from pathlib import Path
from mixtures.loader import Loader

def kilobytes():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])

def first(position):
    loader, began = Loader(plan), time.process_time()
    loader.batch(position, 8)
    return [time.process_time() - began, len(loader._parts._open)]

plan, epochs = pickle.loads(Path(sys.argv[1]).read_bytes()), int(sys.argv[2])
found = {"first": [first(0), first(8_000_000)], "kilobytes": [kilobytes()]}
loader = Loader(plan)
for epoch in range(epochs):
    num = plan.sources[0].num_windows
    for at in range(epoch * num, (epoch + 1) * num, 8):
        loader.batch(at, 8).documents
    found["kilobytes"].append(kilobytes())
found["open"] = len(loader._parts._open)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SHARDS parts of the same windows, each a name of one file."""
    folder = tmp_path_factory.mktemp("shards")
    kind = schema.windows(pa.uint16(), LENGTH)
    ids = pa.array(np.arange(WINDOWS * (LENGTH + 1)).astype(np.uint16))
    columns = [
        pa.FixedSizeListArray.from_arrays(ids, LENGTH + 1),
        pa.array([[0, 10, 50]] * WINDOWS, pa.list_(pa.int32())),
        pa.array([[bytes([1]) * 16] * 3] * WINDOWS, pa.list_(schema.HASH)),
    ]
    one = folder / part_name(0, "arrow")
    with pa.ipc.new_file(str(one), kind) as writer:
        writer.write_batch(pa.record_batch(columns, schema=kind))
    for number in range(1, SHARDS):
        os.link(one, folder / part_name(number, "arrow"))
    write_sealed(folder / "manifest.json", {"selection": "shards", "files": {}})
    return folder


def read(folder: Path, shards: int, epochs: int) -> dict:
    """What READ finds, in a process of its own."""
    tokens = shards * WINDOWS * LENGTH
    source = PlannedSource(
        name="shards", corpus="shards", folder=str(folder), selection="shards",
        windows=(WINDOWS,) * shards, parts_per_group=shards, claimed=1, copies=0, near=0,
        documents=1, num_tokens=tokens, num_bytes=0, requested=1.0, realised=1.0, max_epochs=1e9,
        epochs=1.0,
    )  # fmt: skip
    plan = Plan(
        tokens=9_000_000 * LENGTH, sequence_length=LENGTH, seed=7, tokenizer="t",
        tokenizer_file="", vocab_size=50_000, bos_id=None, eos_id=0, heldout=0, sources=(source,),
    )  # fmt: skip
    path = folder / f"{shards}.pickle"
    path.write_bytes(pickle.dumps(plan))
    arguments = [sys.executable, "-c", READ, str(path), str(epochs)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_first_batch_opens_its_own_shards_at_any_step(folder: Path) -> None:
    """Well under a second, and at step 1,000,000 as at the first one."""
    for seconds, opened in read(folder, SHARDS, 0)["first"]:
        assert opened == 8
        assert seconds < 0.5


def test_memory_is_flat_once_all_shards_are_open(folder: Path) -> None:
    found = read(folder, FEW, 10)
    assert found["open"] == FEW
    before, *epochs = found["kilobytes"]
    assert epochs[4] - before < 10 * FEW + 4_000, "kB for each open shard; blocks of places"
    assert epochs[9] - epochs[4] < 500
