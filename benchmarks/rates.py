"""MB of text per CPU second of each kernel, one core, first pass; and of two limits beside them.

A kernel's first call, on a few documents, is timed apart: it compiles, or loads what an earlier run
compiled. `x json` is the rate over that of parsing the same lines with orjson in the same run.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import pyarrow as pa
from measure import cpu_seconds
from texts import lines, texts, warc_files

Kernel = Callable[[pa.Array], object]

FIRST = 8  # documents of the first call
VOCABULARY = 8_000
WARC_SHARE = 4  # MB of each WARC file for one of text: then all of it is read, 64 MB at most
TRAIN_BYTES = 2_000_000  # of the tokenizer, which is trained here and not timed


@dataclass(frozen=True)
class Setup:
    language: str
    tokenizer: Path


def json_parse() -> Kernel:
    return lambda lines: [orjson.loads(line) for line in lines.to_pylist()]


def inflate() -> Kernel:
    return lambda blocks: [zlib.decompress(block) for block in blocks.to_pylist()]


def normalization(setup: Setup) -> Kernel:
    from filters.normalize import normalize

    return lambda texts: [normalize(text) for text in texts.to_pylist()]


def signal_group(name: str) -> Callable[[Setup], Kernel]:
    def make(setup: Setup) -> Kernel:
        from filters.segments import Texts
        from filters.signals import GROUPS

        measure = GROUPS[name].measure
        return lambda texts: measure(
            Texts(texts), {"lang": pa.array([setup.language] * len(texts))}
        )

    return make


def shingling(setup: Setup) -> Kernel:
    from dedup.shingles import shingles

    return shingles


def minhash(setup: Setup) -> Kernel:
    from dedup.minhash import signatures
    from dedup.shingles import shingles

    return lambda texts: signatures(*shingles(texts))


def tokenization(setup: Setup) -> Kernel:
    from pipeline.settings import Tokenizer
    from pipeline.tokenizer import choose_engine, load

    engine = choose_engine(setup.tokenizer, ["a text", "一段话"])
    return load(Tokenizer(file=str(setup.tokenizer)), engine).encode


# Name -> what makes it: imports stand inside, so that a part that is missing is named.
KERNELS: dict[str, Callable[[Setup], Kernel]] = {
    "normalize": normalization,
    "language": signal_group("language"),
    "gopher": signal_group("gopher"),
    "c4": signal_group("c4"),
    "fineweb": signal_group("fineweb"),
    "shingles": shingling,
    "shingles+minhash": minhash,
    "tokenize": tokenization,
}


def kernels(num_bytes: int, folder: Path) -> None:
    """Print a line for each kernel and language."""
    tokenizer = folder / "rates.json"
    _train(tokenizer)
    for language in ("en", "zh"):
        setup = Setup(language, tokenizer)
        raw, sample = lines(language, num_bytes), texts(language, num_bytes)
        size = sum(len(text.encode()) for text in sample.to_pylist()) / 1e6
        print(f"\n{language}: {len(sample):,} documents, {size:.1f} MB of text")
        json_rate = _print_rate("limit: json", json_parse(), pa.array(raw), size)
        deflated = pa.array([zlib.compress(line) for line in raw])
        _print_rate("limit: zlib", inflate(), deflated, size, json_rate)
        for name, make in KERNELS.items():
            try:
                kernel = make(setup)
            except (ImportError, KeyError) as error:
                print(f"  {name:<18} is not there yet ({error})")
                continue
            _print_rate(name, kernel, sample, size, json_rate)


def extraction(num_bytes: int, _folder: Path) -> None:
    """Print the rate from WARC.gz to main text for each file, in MB of WARC, nearly all HTML."""
    from pipeline.readers import Piece
    from pipeline.readers.warc import read
    from pipeline.settings import Input

    print()
    for path in warc_files():
        records = read(Piece(str(path), path.name), Input(source="web", files=""), "resiliparse")
        next(records)  # what is loaded by the first page is not timed
        count = size = 0
        begin = time.process_time()
        for record in records:
            count, size = count + 1, size + record.num_bytes
            if size >= num_bytes * WARC_SHARE:
                break
        rate = size / (time.process_time() - begin) / 1e6
        print(f"{path.name}: {count:,} pages, {size / 1e6:.1f} MB, {rate:.1f} MB/CPU-s", flush=True)


def _print_rate(
    name: str, kernel: Kernel, items: pa.Array, size: float, json_rate: float | None = None
) -> float:
    first = cpu_seconds(lambda: kernel(items[:FIRST]))
    rate = size / cpu_seconds(lambda: kernel(items[FIRST:]))
    ratio = "" if json_rate is None else f"   {rate / json_rate:6.2f} x json"
    print(f"  {name:<18} {rate:8.1f} MB/CPU-s   first call {first:5.2f} s{ratio}", flush=True)
    return rate


def _train(path: Path) -> None:
    from pipeline.tokenizer_commands import train

    sample = [text for lang in ("en", "zh") for text in texts(lang, TRAIN_BYTES).to_pylist()]
    train(sample, VOCABULARY, path)
