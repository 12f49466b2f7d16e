"""`assay export mixture.yaml --format ... --output FOLDER`: our tokens for other trainers.

Whole documents, one file a source, in the order in which they are packed here (shuffled; what is
read first is a fair sample), for trainers that mix and pack themselves. Or the windows of a run, in
the order of the run, for loaders that read what they are given.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixtures.batch import Batch
from mixtures.dealing import deal
from mixtures.edited_tokens import EditedTokens
from mixtures.interchange import datatrove, mds, megatron, parquet
from mixtures.loader import Loader
from mixtures.packed import packing_of
from mixtures.packing import row_of_ids
from mixtures.plan import Plan, plan_selection
from mixtures.select import Selection, select
from mixtures.spec import Mixture, load_mixture
from mixtures.tokens import TokenShards
from pipeline import finished
from pipeline.amounts import counted, parse_amount
from pipeline.clock import telling
from pipeline.config import ConfigError
from pipeline.files import write_json

BATCH_WINDOWS = 256
TELL_SECONDS = 10.0
EXAMPLE = """examples:
  assay export mixture.yaml --format megatron --output out          documents, a .bin a source
  assay export mixture.yaml --format mds --tokens 2B --output out   windows of a run, in order

megatron: --data-path of Megatron-LM; the line to paste is printed, with weights
datatrove: .ds of datatrove and nanotron
mds: mosaicml-streaming, StreamingDataset(local=out, shuffle=False, batch_size=...)
parquet: Hugging Face, load_dataset(out, split="train", streaming=True)"""

Chunks = Iterator[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Run:
    """A mixture, what it selects, and its plan where windows are asked for."""

    mixture: Mixture
    selection: Selection
    plan: Plan | None
    folder: Path


def _of_documents(write: Callable[[Path, Chunks], list[Path]]) -> Callable[[Run], list[Path]]:
    def every_source(run: Run) -> list[Path]:
        return [
            path
            for name in run.mixture.sources
            for path in write(run.folder / name, _documents(run, name))
        ]

    return every_source


def _mds(run: Run) -> list[Path]:
    assert run.plan is not None
    dtype = np.dtype(np.uint16 if run.plan.vocab_size <= 1 << 16 else np.uint32)
    return mds.write(run.folder, (batch.tokens for batch in _windows(run.plan)), dtype)


def _parquet(run: Run) -> list[Path]:
    assert run.plan is not None
    return parquet.write(run.folder, _windows(run.plan))


# format -> (is it of windows, how to write it)
FORMATS: dict[str, tuple[bool, Callable[[Run], list[Path]]]] = {
    "megatron": (False, _of_documents(megatron.write)),
    "datatrove": (False, _of_documents(datatrove.write)),
    "mds": (True, _mds),
    "parquet": (True, _parquet),
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay export",
        description="Write what a mixture selects for other trainers and loaders.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("mixture", type=Path, help="mixture.yaml")
    parser.add_argument("--format", choices=FORMATS, required=True)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="new or empty")
    parser.add_argument("--tokens", help="of the run, for windows: 2M, 1.5B")
    options = parser.parse_args(argv)
    of_windows = FORMATS[options.format][0]
    if of_windows and options.tokens is None:
        parser.error(f"--format {options.format} writes the windows of a run: give --tokens")
    if not of_windows and options.tokens is not None:
        parser.error(f"--format {options.format} writes whole documents: leave --tokens out")
    tokens = None if options.tokens is None else parse_amount(options.tokens)
    for line in export(options.mixture, options.format, options.output, tokens):
        print(line)
    return 0


def export(path: Path, name: str, folder: Path, tokens: int | None) -> list[str]:
    """Write the files, tokenizer.json and assay.json, which says what they are; what to tell.

    Raises:
        ConfigError: the folder holds something, or the mixture cannot be used.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty; give another --output, or empty it")
    mixture = load_mixture(path)
    selection = select(mixture)
    plan = None if tokens is None else plan_selection(mixture, selection, tokens, write=True)
    run = Run(mixture, selection, plan, folder)
    files = FORMATS[name][1](run)
    root = finished.home(Path(next(iter(mixture.corpora.values()))))
    shards = TokenShards(root, selection.tokenizer)
    shutil.copyfile(shards.folder / "tokenizer.json", folder / "tokenizer.json")
    weights = mixture.weights()
    known: dict[str, Any] = {
        "format": name,
        "tokenizer": selection.tokenizer,
        "vocab_size": shards.vocab_size,
        "sources": {
            count.name: {
                "weight": weights[count.name],
                "documents": count.times,
                "tokens": count.num_tokens,
            }
            for count in selection.counts
        },
        "files": {str(file.relative_to(folder)): file.stat().st_size for file in files},
    }
    if plan is not None:
        known |= {"plan": plan.fingerprint, "sequence_length": plan.sequence_length}
        known |= {"windows": plan.num_windows}
    write_json(folder / "assay.json", known)
    size = sum(known["files"].values())
    lines = [f"wrote {counted(len(files), 'file')} to {folder}: {size:,} bytes"]
    if name == "megatron":
        blend = " ".join(f"{weight:g} {folder / source}" for source, weight in weights.items())
        lines.append(f"--data-path {blend} --tokenizer-type HuggingFaceTokenizer")
    return lines


def _documents(run: Run, name: str) -> Chunks:
    """Ids of the documents of a source, and how many each has; a part in memory at a time."""
    mixture, selection = run.mixture, run.selection
    root = Path(mixture.corpora[mixture.sources[name].corpus])
    packing = packing_of(mixture, root, selection.tokenizer)
    with finished.unchanged(root, selection.states[root]):
        shards = TokenShards(root, selection.tokenizer)
        edited = EditedTokens(root, selection.tokenizer, mixture.edits) if mixture.edits else None
        parts = deal(selection.documents[name], packing)
        for part in telling(
            parts, lambda n: f"export: {name}, {n} of {len(parts)} parts", TELL_SECONDS
        ):
            filled = part.take(np.flatnonzero(part.num_tokens))
            yield row_of_ids(filled, shards, edited), filled.num_tokens


def _windows(plan: Plan) -> Iterator[Batch]:
    total = plan.num_windows
    firsts = range(0, total, BATCH_WINDOWS)
    with closing(Loader(plan)) as loader:
        for first in telling(
            firsts, lambda n: f"export: {n * BATCH_WINDOWS:,} of {total:,} windows", TELL_SECONDS
        ):
            yield loader.batch(first, min(BATCH_WINDOWS, total - first))
