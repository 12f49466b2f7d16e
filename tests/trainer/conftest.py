"""Packed windows and held-out texts without a corpus, and processes that may die."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from mixtures.heldout import HeldoutSet
from mixtures.plan import Plan, PlannedSource, plan_from_dict
from pipeline import schema
from pipeline.corpus import part_name
from trainer import commands, items, loop
from trainer.evaluate import Items

LENGTH = 32
VOCABULARY = 280  # 256 bytes and some merges
WINDOWS = 96
TEXTS = ("The cat sat on the mat.", "", "a", "line\r\nline " * 20)


def make_data(folder: Path, vocabulary: int = VOCABULARY) -> None:
    """Write plan.json, one packed part and a byte-level tokenizer.json."""
    import tokenizers

    rng = np.random.default_rng(7)
    ids = np.empty(WINDOWS * LENGTH + 1, np.uint16)
    ids[0] = 1
    noise = rng.random(len(ids)) < 0.1
    for at in range(1, len(ids)):  # a rule that a model can learn, with some noise
        ids[at] = rng.integers(vocabulary) if noise[at] else (3 * int(ids[at - 1]) + 1) % vocabulary
    rows: dict[str, list[Any]] = {"ids": [], "starts": [], "documents": []}
    for at in range(WINDOWS):
        starts = [0, *sorted(rng.choice(np.arange(1, LENGTH), rng.integers(3), replace=False))]
        rows["ids"].append(ids[at * LENGTH : (at + 1) * LENGTH + 1])
        rows["starts"].append(starts)
        rows["documents"].append([schema.document_id("s", "f", at * 100 + n) for n in starts])
    table = pa.table(rows, schema=schema.windows(pa.uint16(), LENGTH))
    packed = folder / "packed"
    packed.mkdir(parents=True)
    with pa.ipc.new_file(packed / part_name(0, "arrow"), table.schema) as writer:
        writer.write_table(table)
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=alphabet, show_progress=False
    )
    model.train_from_iterator(["the cat sat on the mat 我们 我们 我们"], trainer)
    model.save(str(folder / "tokenizer.json"))
    source = PlannedSource(
        name="s",
        corpus="c",
        folder=str(packed),
        selection="0" * 32,
        windows=(WINDOWS,),
        parts_per_group=1,
        claimed=WINDOWS + 9,
        copies=5,
        near=4,
        documents=WINDOWS,
        num_tokens=WINDOWS * LENGTH,
        num_bytes=WINDOWS * LENGTH,
        requested=1.0,
        realised=1.0,
        max_epochs=4.0,
        epochs=1.0,
    )
    plan = Plan(
        tokens=WINDOWS * LENGTH,
        sequence_length=LENGTH,
        seed=0,
        tokenizer="t" * 16,
        tokenizer_file=str(folder / "tokenizer.json"),
        vocab_size=vocabulary,
        bos_id=None,
        eos_id=None,
        heldout=3,
        sources=(source,),
    )
    (folder / "plan.json").write_text(json.dumps(plan.to_dict()))


def heldout_sets(texts: Sequence[str] = TEXTS, language: str = "en") -> list[HeldoutSet]:
    """One set `c/<language>/s` of these texts."""
    documents = sorted((schema.text_hash(text.encode()).hex(), text) for text in texts)
    return [HeldoutSet(f"c/{language}/s", language, "s", tuple(documents))]


RUN = {
    "mixture": "mixture.yaml",
    "model": {"width": 16, "depth": 2, "heads": 2, "kv_heads": 1, "ffn": 32},
    "tokens": 20 * 4 * LENGTH - LENGTH,  # 20 steps, the last one of 3 windows
    "batch_tokens": 4 * LENGTH,
    "micro_batch": 2,
    "checkpoint": {"every": 4 * 4 * LENGTH, "keep": 2},
    "evaluate": {"every": 8 * 4 * LENGTH},
    "learning_rate": 0.01,
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data, which runs of this process train on."""
    make_data(tmp_path / "data")
    plan = plan_from_dict(json.loads((tmp_path / "data" / "plan.json").read_text()))

    def items_of(plan: Plan, run: object) -> Items:
        sets = heldout_sets() + heldout_sets(["我们在路上。", "🙂"], "zh")
        return items.tokenize(sets, Path(plan.tokenizer_file), plan.bos_id)

    monkeypatch.setattr(loop, "make_plan", lambda path, tokens: replace(plan, tokens=tokens))
    monkeypatch.setattr(loop, "heldout_items", items_of)
    monkeypatch.setattr(commands, "heldout_items", items_of)
    return tmp_path / "data"


@pytest.fixture
def run_yaml(tmp_path: Path) -> Callable[..., Path]:
    """(name, changes) -> a run.yaml of 20 short steps; its folder is runs/<name>."""

    def write(name: str, **changes: Any) -> Path:
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump({**RUN, **changes}))
        return path

    return write


@pytest.fixture
def forked() -> Callable[..., list[int]]:
    """(*functions) -> exit codes of processes that run one each, at the same time.

    A fork costs nothing where a new process imports torch for seconds.
    """

    def run(*functions: Callable[[], object]) -> list[int]:
        children = []
        for function in functions:
            child = os.fork()
            if child == 0:
                try:
                    function()
                    os._exit(0)
                finally:
                    traceback.print_exc()
                    os._exit(1)
            children.append(child)
        return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]

    return run
