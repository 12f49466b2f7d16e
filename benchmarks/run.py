"""Figures of this machine: `make bench`, or a part of it by name.

    python benchmarks/run.py [--smoke] [kernels] [signals] [extraction] [cut] [road] [loader]
                             [gather] [packing] [mixtures] [dedup]

Text: $ASSAY_CORPUS (a folder with *-en.jsonl.gz, *-zh.jsonl.gz and *.warc.gz) where it is set, else
the data of the quickstart. Compare by CPU second: wall time moves with the neighbours.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

# Rates are per core. Set before anything loads numpy.
os.environ["OMP_NUM_THREADS"] = os.environ["RAYON_NUM_THREADS"] = "1"

MB = 1_000_000
SMOKE_BYTES, BYTES = MB, 16 * MB  # of JSONL per language
QUICKSTART = Path(__file__).resolve().parents[1] / "examples" / "quickstart"

# Name -> module:function of (bytes of JSONL per language, a folder that all of them share).
BENCHMARKS: dict[str, str] = {
    "kernels": "rates:kernels",
    "signals": "signals:signals",
    "extraction": "rates:extraction",
    "cut": "cut:cut",
    "road": "road:road",
    "loader": "loader:loader",
    "gather": "loader_peers:against_gather",
    "packing": "packing:packing",
    "mixtures": "mixture_error:main",
    "dedup": "dedup_scale:scale",
}
NEEDS = {"loader": "road", "packing": "road"}  # they read the corpus that the road left


def main() -> int:
    """Print the figures of each benchmark asked for; 1 when one could not run."""
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/run.py")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--smoke", action="store_true", help="1 MB instead of 16: does it run?")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - BENCHMARKS.keys())
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; known: {', '.join(BENCHMARKS)}")
    asked = set(options.names or BENCHMARKS)
    asked |= {NEEDS[name] for name in asked if name in NEEDS}
    size = SMOKE_BYTES if options.smoke else BYTES
    text = os.environ.get("ASSAY_CORPUS") or "the data of the quickstart"
    if not os.environ.get("ASSAY_CORPUS"):
        subprocess.run([sys.executable, str(QUICKSTART / "data.py")], check=True)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, text: {text}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in (name for name in BENCHMARKS if name in asked):
            module, function = BENCHMARKS[name].split(":")
            try:
                getattr(importlib.import_module(module), function)(size, Path(folder))
            except (ImportError, FileNotFoundError, RuntimeError) as error:
                failed = 1
                print(f"\n{name}: could not run: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
