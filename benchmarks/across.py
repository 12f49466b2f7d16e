"""What deduplication costs of the whole of `assay prepare`, by feature; and the memory that the
join of repeated lines takes.

    python benchmarks/across.py FOLDER [...]                     FOLDERs have *.jsonl.gz
    python benchmarks/across.py FOLDER --megabytes 20
    python benchmarks/across.py --places 12e6                    one line on so many pages

One corpus with every feature, one worker, kernels compiled before. CPU seconds are those of the
view `timings`; a share is of all stages but the features of the other lines of the table, so it is
what a corpus with this feature alone would pay.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import tempfile
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import yaml
from measure import run

from pipeline import schema
from pipeline.dedup_settings import UNITS
from pipeline.seeing.asking import rows
from pipeline.tables import write_columns
from pipeline.transforms import across, pieces

ASSAY = str(Path(sys.executable).with_name("assay"))
TOKENIZER = ("--vocab-size", "8000", "--sample", "4MB")
EXTRA = {
    "near": {"containment": 0.9},
    "substrings": {"min_bytes": 300},
    "across": list(UNITS),
    "edits": [*UNITS, "substrings"],
    "heldout": {"share": 0.005},
}
# Feature -> how the names of its stages begin. What exact and near copies take is in every corpus.
FEATURES = {
    "exact and near": ("signatures", "forest", "candidates", "components", "pairs", "copies"),
    "contained": ("contained",),
    "substrings": (
        "substrings",
        "stretches",
        "extensions",
        "edits/substrings",
        "signals/substrings",
    ),
    "lines and paragraphs": ("pieces", "across", "signals/across", *(f"edits/{u}" for u in UNITS)),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/across.py")
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--megabytes", type=float, help="of text (default: all)")
    parser.add_argument("--places", type=float, help="pages that show one line")
    options = parser.parse_args()
    if options.places:
        join_memory(int(options.places))
    if options.folders:
        with tempfile.TemporaryDirectory() as folder:
            shares(options.folders, Path(folder), options.megabytes or float("inf"))
    return 0


# --- shares of `prepare` --------------------------------------------------------------------------


def shares(folders: list[Path], folder: Path, megabytes: float) -> None:
    size = _copy(folders, folder / "in.jsonl", megabytes * 1e6)
    few = _copy(folders, folder / "few.jsonl", 20_000)
    assert few
    settings = _settings(folder, "in")
    run(
        [
            ASSAY,
            "tokenizer",
            "train",
            str(settings),
            *TOKENIZER,
            "--output",
            str(folder / "tok.json"),
        ]
    )
    run([ASSAY, "prepare", str(_settings(folder, "few")), "--workers", "1"])  # compiles
    cost = run([ASSAY, "prepare", str(settings), "--workers", "1"])
    told = "select stage, sum(cpu_seconds) s from timings group by all order by s desc"
    by_stage = {row["stage"]: row["s"] or 0.0 for row in rows(folder / "in", told)}
    print(
        f"{size / 1e6:.1f} MB of text, load {cost.load:.0f}, peak {cost.peak_bytes / 1e6:,.0f} MB"
    )
    of: dict[str, float] = {}
    for stage, seconds in by_stage.items():
        feature = next((f for f, begins in FEATURES.items() if stage.startswith(begins)), "")
        of[feature] = of.get(feature, 0) + seconds
        print(f"  {stage:<32}{seconds:8.2f} CPU s  {feature}")
    rest = of.pop("", 0.0) + of["exact and near"]
    for feature, seconds in of.items():
        whole = rest if feature == "exact and near" else rest + seconds
        print(f"{feature:<24}{seconds:8.2f} CPU s{seconds / whole:8.1%}")


def _copy(folders: list[Path], target: Path, most: float) -> int:
    size = 0
    with open(target, "wb") as out:
        for path in (p for folder in folders for p in sorted(folder.glob("*.jsonl.gz"))):
            with gzip.open(path) as lines:
                for line in lines:
                    if size >= most:
                        return size
                    out.write(line)
                    size += len(line)
    return size


def _settings(folder: Path, name: str) -> Path:
    spec = {
        "inputs": [{"source": "web", "files": f"{name}.jsonl", "text": "text", "kind": "web"}],
        "tokenizer": "tok.json",
        "output": name,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(spec | EXTRA))
    return path


# --- memory of a join -----------------------------------------------------------------------------


PART_PAGES = 100_000
JOIN = """
import resource, sys
from pathlib import Path
from pipeline.dedup_settings import Across
from pipeline.transforms import across
root, parts = Path(sys.argv[1]), list(range(int(sys.argv[2])))
print(across.join(root, Across(repeated_lines={}), parts, 0, 1), end=": ")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000, "MB at most")
"""


def join_memory(pages: int) -> None:
    """Of one line on all pages, of which no two are the same text."""
    parts = -(-pages // PART_PAGES)
    with tempfile.TemporaryDirectory() as folder:
        for part in range(parts):
            _write(Path(folder), part, PART_PAGES)
        cost = run([sys.executable, "-c", JOIN, folder, str(parts)])
        answer = across.output(Path(folder), 0).stat().st_size / 1e6
    print(f"{cost.output.strip()}, {cost.cpu_seconds:.1f} CPU s, answer {answer:.0f} MB")


def _write(root: Path, part: int, pages: int) -> None:
    rows, nothing = np.arange(pages, dtype=np.uint32), np.zeros(pages, np.uint32)
    high = np.full(pages, 1 << 63, np.uint64)
    low = np.full(pages, 4 | 2, np.uint64)  # unit 2: a repeated line
    blank = nothing.astype(np.uint16)
    pieces_path, documents_path = pieces.outputs(root, part)
    write_columns(pieces_path, schema.PIECES, [high, low, rows, nothing, nothing, blank, blank])
    contents = np.random.default_rng(part).integers(0, 1 << 64, pages, np.uint64)
    write_columns(documents_path, schema.PIECE_DOCUMENTS, [contents, rows])


if __name__ == "__main__":
    sys.exit(main())
