"""A large gzip stream to shards in one pass: MB of text per second, memory, and its limit.

    ASSAY_CORPUS=... python benchmarks/cut.py FOLDER [--gigabytes 4]

One file of one gzip member, of altered copies of the real files (copies.py); deleted after. The
limit is the same file inflated and no more, in the same run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from copies import write_copies
from measure import run

SHARD_BYTES = 32_000_000  # the default of corpus.yaml
CUT = "import sys; from pipeline.readers.spill import spill; "
CUT += "spill(sys.argv[1], 'in.jsonl.gz', sys.argv[2], int(sys.argv[3]))"
INFLATE = "import sys; from pipeline.readers.streams import chunks; "
INFLATE += "print(sum(map(len, chunks(sys.argv[1]))))"


def cut(num_bytes: int, folder: Path) -> None:
    """Print a line; `num_bytes` of text."""
    source, shards = folder / "single", folder / "shards"
    path = str(write_copies(source, num_bytes, single=True)[0])
    inflated = run([sys.executable, "-c", INFLATE, path])
    cost = run([sys.executable, "-c", CUT, path, str(shards), str(SHARD_BYTES)])
    size = int(inflated.output.split()[-1]) / 1e6
    written = sum(shard.stat().st_size for shard in shards.iterdir()) / 1e6
    print(
        f"\ncut: one gzip member of {size:,.0f} MB in {len(list(shards.glob('*.zst')))} shards, "
        f"{written / size:.2f} of it on disk\n"
        f"  {size / cost.wall_seconds:.0f} MB/s, {size / cost.cpu_seconds:.0f} MB/CPU-s, peak "
        f"{cost.peak_bytes / 1e6:.0f} MB; to inflate and no more {size / inflated.cpu_seconds:.0f} "
        f"MB/CPU-s; load {cost.load:.1f}",
        flush=True,
    )
    shutil.rmtree(source)
    shutil.rmtree(shards)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/cut.py")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    options = parser.parse_args()
    cut(int(options.gigabytes * 1e9), options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
