"""The whole road, JSONL to tokens, as a user walks it: `assay prepare` over every JSONL file.

Start-up is the same command on a few documents, kernels compiled; first compilation is what that
costs more with an empty cache. The few stand twice, nearly, and a third is held out: every kernel
is met. The rate is that of the text alone: start-up is taken off. Two limits beside it, over the
same files in the same run: to read them at all, and to tokenize alone.
"""

from __future__ import annotations

import gzip
import os
import sys
import time
import zlib
from pathlib import Path

import orjson
import pyarrow as pa
import yaml
from measure import Cost, run
from texts import jsonl_files, lines

from pipeline.corpus import manifest
from pipeline.settings import Tokenizer
from pipeline.tokenizer import choose_engine, load

ASSAY = str(Path(sys.executable).with_name("assay"))
FEW_BYTES = 20_000
SMALL_BYTES = 2_000_000  # asked for no more than this, the road does not take all files
TOKENIZER = ("--vocab-size", "8000", "--sample", "4MB")
BATCH = 2_048  # documents, as in a row group


def road(num_bytes: int, folder: Path) -> None:
    """Print the figures; leaves the corpus `all` in `folder`, for the loader's benchmark."""
    everything = jsonl_files() if num_bytes > SMALL_BYTES else some(folder, "some", num_bytes)
    few = corpus(folder, "few", some(folder, "few", FEW_BYTES, " again"), {"share": 0.3})
    whole, twice = (corpus(folder, name, everything, {}) for name in ("all", "two"))
    tokenizer = folder / "tokenizer.json"
    run([ASSAY, "tokenizer", "train", str(whole), *TOKENIZER, "--output", str(tokenizer)])
    cold = prepare(few, folder, 1)
    (folder / "few").rename(folder / "few-cold")
    warm, one, two = prepare(few, folder, 1), prepare(whole, folder, 1), prepare(twice, folder, 2)

    stages = manifest(folder / "all")["stages"]
    size = stages["ingest"]["totals"]["bytes"] / 1e6
    print(f"\nthe whole road, JSONL to tokens: {len(everything)} files, {size:.1f} MB of text")
    print(f"  start-up           {warm.cpu_seconds:7.1f} CPU-s, {warm.wall_seconds:.1f} s")
    print(f"  first compilation  {cold.cpu_seconds - warm.cpu_seconds:7.1f} CPU-s more")
    for workers, cost in ((1, one), (2, two)):
        print(
            f"  {workers} worker{'s' * (workers > 1):<10} {cost.cpu_seconds:7.1f} CPU-s, "
            f"{cost.wall_seconds:.1f} s, peak {cost.peak_bytes / 1e6:,.0f} MB over all processes"
        )
    print(f"  rate               {size / one.cpu_seconds:7.1f} MB/CPU-s with start-up")
    work = one.cpu_seconds - warm.cpu_seconds
    if work < 0.3 * warm.cpu_seconds:  # start-up itself varies by a third
        print("  start-up is most of it: take more text to see a rate", flush=True)
        return
    print(f"  rate               {size / work:7.1f} MB/CPU-s, start-up taken off")
    reading, encoding = limits(everything, tokenizer)
    for name, seconds in (("zlib + json", reading), ("tokenizer", encoding)):
        print(
            f"  limit: {name:<11} {size / seconds:7.1f} MB/CPU-s, "
            f"{seconds / work:.0%} of the road's seconds"
        )
    print(f"  {'stage':<19}  CPU-s  share")
    cpu = {name: stage["cpu_seconds"] for name, stage in stages.items()}
    for name, seconds in sorted(cpu.items(), key=lambda item: -item[1]):
        if seconds >= 0.01 * sum(cpu.values()):
            print(f"  {name:<19} {seconds:6.2f} {seconds / sum(cpu.values()):6.0%}")
    print(f"  {'all stages':<19} {sum(cpu.values()):6.2f}", flush=True)


def some(folder: Path, name: str, num_bytes: int, *endings: str) -> list[Path]:
    """Files of as much text of each language; once more with each of the endings."""
    paths = []
    for language in ("en", "zh"):
        rows = [orjson.loads(line) for line in lines(language, num_bytes)]
        again = [{**row, "text": row["text"] + ending} for ending in endings for row in rows]
        path = folder / f"{name}-{language}.jsonl.gz"
        path.write_bytes(gzip.compress(b"\n".join(map(orjson.dumps, rows + again))))
        paths.append(path)
    return paths


def corpus(folder: Path, name: str, files: list[Path], heldout: dict[str, float]) -> Path:
    """A corpus.yaml with a source for each file."""
    sources = [{"source": path.name.split(".")[0], "files": str(path)} for path in files]
    settings = {
        "inputs": sources,
        "tokenizer": "tokenizer.json",
        "heldout": heldout,
        "output": name,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def prepare(settings: Path, folder: Path, workers: int) -> Cost:
    """`assay prepare`, with a cache of compiled kernels that begins empty."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "compiled")}
    return run([ASSAY, "prepare", str(settings), "--workers", str(workers)], environment)


def limits(files: list[Path], tokenizer: Path) -> tuple[float, float]:
    """CPU seconds to inflate and parse the files and no more, and to tokenize their texts."""
    engine = choose_engine(tokenizer, ["a text", "一段话"])
    encode = load(Tokenizer(file=str(tokenizer)), engine).encode
    reading = encoding = 0.0
    for path in files:
        begin = time.process_time()
        rows = zlib.decompress(path.read_bytes(), wbits=31).split(b"\n")
        texts = [orjson.loads(row)["text"] for row in rows if row]
        reading += time.process_time() - begin
        texts = [text for text in texts if text]
        for at in range(0, len(texts), BATCH):
            batch = pa.array(texts[at : at + BATCH], pa.string())
            begin = time.process_time()
            encode(batch)
            encoding += time.process_time() - begin
    return reading, encoding
