"""A training run that takes a second: packed windows and held-out texts of no corpus."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mixtures.heldout import HeldoutSet
from mixtures.plan import Plan, PlannedSource, plan_from_dict
from pipeline import schema
from pipeline.files import file_hash, part_name, write_sealed
from pipeline.settings import Tokenizer
from pipeline.tokenizer import load
from trainer import commands, loop, rescore, scoring
from trainer import data as reads
from trainer.metrics import Progress
from trainer.record import RunResult
from trainer.settings import load_run

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
    written = packed / part_name(0, "arrow")
    known = {"bytes": written.stat().st_size, "xxh3": file_hash(written)}
    write_sealed(packed / "manifest.json", {"files": {written.name: known}})
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
        tokenizer=load(Tokenizer(file=str(folder / "tokenizer.json"), eos=None)).hash,
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
    "threads": 1,  # two that wait for each other on a busy machine: 35 s instead of 1 s
}


def use(data: Path, patch: Callable[[object, str, object], None] = setattr, **changes: Any) -> None:
    """Let runs of this process train on `data`, as `make_data` wrote it; `changes` of its plan."""
    plan = plan_from_dict(json.loads((data / "plan.json").read_text()))

    def plan_of(mixture: object, tokens: int, pack: bool = True) -> Plan:
        return replace(plan, tokens=tokens, **changes)

    def sets_of(run: object) -> list[HeldoutSet]:
        return heldout_sets() + heldout_sets(["我们在路上。", "🙂"], "zh")

    patch(reads, "make_plan", plan_of)
    patch(commands, "require_usable", lambda run: None)
    for module in (scoring, rescore):
        patch(module, "heldout_sets", sets_of)


def train(path: Path, **options: Any) -> RunResult:
    """Train as run.yaml says, without a word."""
    return loop.train(load_run(path), progress=Progress(io.StringIO()), **options)


def losses(folder: Path) -> list[tuple[int, float, float]]:
    """Step, loss and gradient norm of each step of a run."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [(row["step"], row["loss"], row["gradient_norm"]) for row in rows]
