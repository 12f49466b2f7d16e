"""The whole road as a user walks it: `assay prepare`, JSONL or WARC to tokens, by language.

Rates are MB of unique text (of HTML for WARC) per CPU second with start-up taken off, one worker,
settings as they come, the files of a language one source. Start-up is the same command on a few
documents, kernels compiled; first compilation is what that costs more with an empty cache. Beside
each stage stands its limit: a plain loop over the same kernel, texts in memory, in the same run.
For two workers the set is cut into SHARDS, and so it is for the one beside them. All run in turn.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import yaml
from limits import limits
from measure import Cost, in_turn, run, spread
from texts import files, lines, warc_files

from pipeline.corpus import manifest

ASSAY = str(Path(sys.executable).with_name("assay"))
FEW_BYTES = 20_000
SMALL_BYTES = 2_000_000  # asked for no more than this, the road does not take all files
TOKENIZER = ("--vocab-size", "8000", "--sample", "4MB")
TURNS = 3
SHARDS = 4  # of a set, so that two workers can share it
WAYS = ("1 worker", "1 worker, cut", "2 workers, cut")


@dataclass(frozen=True)
class Set:
    name: str
    files: list[Path]
    input_bytes: int  # that the rate counts: of text, of HTML


def road(num_bytes: int, folder: Path) -> None:
    """Print a table for each set; leaves the corpus `all` in `folder`, for the loader."""
    small = num_bytes <= SMALL_BYTES
    sets = [_jsonl(language, small, num_bytes, folder) for language in ("en", "zh")]
    if not small:
        sets.append(_warc())
    tokenizer = folder / "tokenizer.json"
    everything = [path for found in sets[:2] for path in found.files]
    whole = corpus(folder, "all", everything, {})
    run([ASSAY, "tokenizer", "train", str(whole), *TOKENIZER, "--output", str(tokenizer)])
    few = corpus(folder, "few", some(folder, "few", FEW_BYTES, " again"), {"share": 0.3})
    cold = prepare(few, folder, 1)
    (folder / "few").rename(folder / "few-cold")
    one, two = in_turn([lambda: _fresh(few, folder, 1), lambda: _fresh(few, folder, 2)], TURNS)
    start = {1: min(one, key=_cpu), 2: min(two, key=_cpu)}
    print("\nstart-up of `assay prepare`, on a few documents")
    for workers, cost in start.items():
        print(
            f"  {workers} worker(s)        {cost.cpu_seconds:6.1f} CPU-s {cost.wall_seconds:6.1f} s"
        )
    more = cold.cpu_seconds - start[1].cpu_seconds
    print(f"  first compilation  {more:6.1f} CPU-s more, once a machine", flush=True)
    for found in sets:
        _table(found, folder, start, tokenizer, 1 if small else TURNS)
    prepare(whole, folder, 1)


def _table(found: Set, folder: Path, start: dict[int, Cost], tokenizer: Path, turns: int) -> None:
    size = found.input_bytes / 1e6
    cut = corpus(folder, f"{found.name}-cut", found.files, {}, found.input_bytes // SHARDS)
    whole = corpus(folder, found.name, found.files, {})
    ways: list[Callable[[], Cost]] = [
        lambda: _fresh(whole, folder, 1),
        lambda: _fresh(cut, folder, 1),
        lambda: _fresh(cut, folder, 2),
    ]
    runs = in_turn(ways, turns)
    stages = manifest(folder / found.name)["stages"]
    unit = "HTML" if found.name == "warc" else "text"
    print(f"\n{found.name}: {len(found.files)} files, {size:.1f} MB of {unit}")
    best = []
    for name, workers, costs in zip(WAYS, (1, 1, 2), runs, strict=True):
        cpu = [cost.cpu_seconds - start[workers].cpu_seconds for cost in costs]
        wall = [cost.wall_seconds - start[workers].wall_seconds for cost in costs]
        peak = max(cost.peak_bytes for cost in costs) / 1e6
        best.append(min(wall))
        print(
            f"  {name:<18} {size / min(cpu):6.1f} MB/CPU-s ({spread(cpu)} CPU-s, "
            f"{spread(wall)} s, load {spread([cost.load for cost in costs])}), peak {peak:,.0f} MB"
        )
    print(f"  two cores are {best[1] / best[2]:.2f} times one")
    bounds = limits(found.files, tokenizer)
    total = sum(stage["cpu_seconds"] for stage in stages.values())
    print(f"  {'stage':<19}  CPU-s  share    MB/CPU-s   limit  times its limit")
    for name, stage in sorted(stages.items(), key=lambda item: -item[1]["cpu_seconds"]):
        seconds = stage["cpu_seconds"]
        if seconds < 0.01 * total:
            continue
        line = f"  {name:<19} {seconds:6.2f} {seconds / total:6.0%} {size / seconds:11.1f}"
        if name in bounds:
            line += f" {size / bounds[name]:7.1f} {seconds / bounds[name]:8.1f}"
        print(line)
    work = min(cost.cpu_seconds for cost in runs[0]) - start[1].cpu_seconds
    slowest = max(bounds, key=lambda name: bounds[name])
    print(
        f"  {'all stages':<19} {total:6.2f}; the road costs {work / bounds[slowest]:.1f} times its "
        f"slowest kernel ({slowest})",
        flush=True,
    )


def _jsonl(language: str, small: bool, num_bytes: int, folder: Path) -> Set:
    found = some(folder, "some", num_bytes)[language == "zh" :][:1] if small else files(language)
    size = 0
    for path in found:
        for line in zlib.decompress(path.read_bytes(), wbits=31).split(b"\n"):
            size += len((orjson.loads(line)["text"] or "").encode()) if line else 0
    return Set(language, found, size)


def _warc() -> Set:
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    size = 0
    for path in warc_files():
        with open(path, "rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response):
                size += len(record.reader.read())
    return Set("warc", warc_files(), size)


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


def corpus(
    folder: Path,
    name: str,
    paths: list[Path],
    heldout: dict[str, float],
    shard_bytes: int = 32_000_000,
) -> Path:
    """A corpus.yaml of one source, whose folder holds links to the files."""
    links = folder / "in" / name
    shutil.rmtree(links, ignore_errors=True)
    links.mkdir(parents=True)
    for path in paths:
        (links / path.name).symlink_to(path.resolve())
    settings = {
        "inputs": [{"source": name, "files": str(links / "*")}],
        "tokenizer": "tokenizer.json",
        "heldout": heldout,
        "output": name,
        "shard_bytes": shard_bytes,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def prepare(settings: Path, folder: Path, workers: int) -> Cost:
    """`assay prepare`, with a cache of compiled kernels that begins empty."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "compiled")}
    return run([ASSAY, "prepare", str(settings), "--workers", str(workers)], environment)


def _fresh(settings: Path, folder: Path, workers: int) -> Cost:
    """The same from nothing."""
    shutil.rmtree(folder / settings.stem, ignore_errors=True)
    return prepare(settings, folder, workers)


def _cpu(cost: Cost) -> float:
    return cost.cpu_seconds
