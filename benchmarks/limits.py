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
from filters.signals import GROUPS
from pipeline.readers import Piece, Record
from pipeline.readers.warc import read
from pipeline.settings import Input, Tokenizer
from pipeline.tokenizer import choose_engine, load

BATCH = 2_048  # documents, as in a row group
FIRST = 8  # documents of the call that is not counted


def limits(files: list[Path], tokenizer: Path) -> dict[str, float]:
    """CPU seconds of each stage's kernel over the texts of JSONL or WARC files."""
    begin = time.process_time()
    texts = [text for path in files for text in _texts(path)]
    found = {"ingest": time.process_time() - begin}
    batches = [pa.array(texts[at : at + BATCH], pa.string()) for at in range(0, len(texts), BATCH)]
    languages = pa.array([""] * BATCH)
    for name, kernel in _kernels(tokenizer, languages).items():
        kernel(batches[0][:FIRST])
        begin = time.process_time()
        for batch in batches:
            kernel(batch)
        found[name] = time.process_time() - begin
    return found


def _kernels(tokenizer: Path, languages: pa.Array) -> dict[str, Callable[[pa.Array], object]]:
    engine = choose_engine(tokenizer, ["a text", "一段话"])
    kernels: dict[str, Callable[[pa.Array], object]] = {
        f"signals/{name}": lambda batch, group=group: group.measure(batch, languages[: len(batch)])
        for name, group in GROUPS.items()
    }
    kernels["tokens"] = load(Tokenizer(file=str(tokenizer)), engine).encode
    kernels["signatures"] = lambda batch: signatures(*shingles(batch))
    return kernels


def _texts(path: Path) -> list[str]:
    """Inflate and parse, no more; of WARC files the pages' main text."""
    if path.name.endswith(".warc.gz"):
        pages = read(Piece(str(path), path.name), Input(source="web", files=""), "resiliparse")
        return [page.text for page in pages if isinstance(page, Record)]
    rows = zlib.decompress(path.read_bytes(), wbits=31).split(b"\n")
    texts = [orjson.loads(row)["text"] for row in rows if row]
    return [text for text in texts if text]
