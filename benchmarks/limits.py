"""What no pipeline of this kind goes below: each kernel in a plain loop, texts in memory.

CPU seconds over all texts of some files, in batches of a row group. A kernel's first call, on a few
documents, is not counted: it loads what was compiled.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from pathlib import Path

import orjson
import pyarrow as pa

from dedup.minhash import signatures
from dedup.shingles import shingles
from filters.segments import Texts
from filters.signals import GROUPS
from pipeline.groups import DEFAULT
from pipeline.readers import Piece, Record
from pipeline.readers.warc import read
from pipeline.settings import Input, Tokenizer
from pipeline.tokenizer import choose_engine, load

Kernel = Callable[[pa.Array], object]

BATCH = 2_048  # documents, as in a row group
FIRST = 8  # documents of the call that is not counted


def limits(files: list[Path], tokenizer: Path) -> dict[str, float]:
    """CPU seconds of each stage's kernel over the texts of JSONL or WARC files."""
    begin = time.process_time()
    texts = [text for path in files for text in _texts(path)]
    found = {"ingest": time.process_time() - begin}
    encode = load(
        Tokenizer(file=str(tokenizer)), choose_engine(tokenizer, ["a text", "一段话"])
    ).encode
    kernels: dict[str, Kernel] = {"tokens": encode, "signatures": _sign}
    _once(pa.array(texts[:FIRST], pa.string()), kernels)
    for at in range(0, len(texts), BATCH):
        for name, seconds in _once(pa.array(texts[at : at + BATCH], pa.string()), kernels).items():
            found[name] = found.get(name, 0) + seconds
    return found


def _once(batch: pa.Array, kernels: dict[str, Kernel]) -> dict[str, float]:
    """CPU seconds of each kernel over one batch; signal groups share what they segment."""
    seconds: dict[str, float] = {}
    shared, nothing = Texts(batch), pa.array([""] * len(batch))
    languages = nothing
    for name in DEFAULT:
        group = GROUPS[name]
        begin = time.process_time()
        measured = group.measure(shared, {"lang": languages, **dict.fromkeys(group.reads, nothing)})
        seconds[f"signals/{name}"] = time.process_time() - begin
        if name == "language":
            languages = measured["lang"]
    for name, kernel in kernels.items():
        begin = time.process_time()
        kernel(batch)
        seconds[name] = time.process_time() - begin
    return seconds


def _sign(batch: pa.Array) -> object:
    return signatures(*shingles(batch))


def _texts(path: Path) -> list[str]:
    """Inflate and parse, no more; of WARC files the pages' main text."""
    if path.name.endswith(".warc.gz"):
        pages = read(Piece(str(path), path.name), Input(source="web", files=""), "resiliparse")
        return [page.text for page in pages if isinstance(page, Record)]
    rows = zlib.decompress(path.read_bytes(), wbits=31).split(b"\n")
    texts = [orjson.loads(row)["text"] for row in rows if row]
    return [text for text in texts if text]
