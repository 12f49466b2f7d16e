"""Is it bounded? Peak memory, disk written and seconds of `assay prepare` at growing sizes.

    ASSAY_CORPUS=... python benchmarks/bounded.py FOLDER 0.2 2 20 [--single] [--workers 2] [--keep]

Text: altered copies of the real files (copies.py), gzipped. Everything is deleted after each size,
but the text with `--keep`, which a later call with the same size takes.
Memory is the peak of the whole process tree, shared pages counted once. Disk written is what every
process of the run wrote, temporary files included; it is compared with the text.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from copies import write_copies
from measure import run
from road import ASSAY

from pipeline.corpus import manifest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/bounded.py")
    parser.add_argument("folder", type=Path, help="needs about 3 times the largest size")
    parser.add_argument("gigabytes", type=float, nargs="+")
    parser.add_argument("--single", action="store_true", help="one file of one gzip member")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tokenizer", default="deepseek")
    parser.add_argument("--keep", action="store_true", help="the text stays, for a later call")
    options = parser.parse_args()
    print(
        f"{options.workers} workers\n"
        "     text GB  documents  peak MB  written/text  kept/text  CPU-s  wall s  MB/s",
        flush=True,
    )
    for size in options.gigabytes:
        folder = options.folder / f"{size:g}"
        shutil.rmtree(folder / "big", ignore_errors=True)
        text_stands = folder / "in-is-whole"
        if not text_stands.exists():
            shutil.rmtree(folder / "in", ignore_errors=True)
            write_copies(folder / "in", int(size * 1e9), options.single)
            text_stands.touch()
        settings = folder / "big.yaml"
        settings.write_text(
            yaml.safe_dump(
                {
                    "inputs": [{"source": "copies", "files": str(folder / "in" / "*")}],
                    "tokenizer": options.tokenizer,
                    "output": "big",
                }
            )
        )
        subprocess.run(["sync"], check=True)
        cost = run([ASSAY, "prepare", str(settings), "--workers", str(options.workers)])
        totals = manifest(folder / "big")["stages"]["ingest"]["totals"]
        text = totals["bytes"]
        kept = sum(f.stat().st_size for f in (folder / "big").rglob("*") if f.is_file())
        print(
            f"  {text / 1e9:10.2f} {totals['documents']:10,} {cost.peak_bytes / 1e6:8,.0f}"
            f" {cost.written_bytes / text:13.2f} {kept / text:10.2f} {cost.cpu_seconds:6,.0f}"
            f" {cost.wall_seconds:7,.0f} {text / 1e6 / cost.wall_seconds:5.1f}",
            flush=True,
        )
        print("   " + "  ".join(_by_table(folder / "big", text)), flush=True)
        shutil.rmtree(folder / "big" if options.keep else folder)
    return 0


def _by_table(root: Path, text: int) -> list[str]:
    """Bytes on disk of each table in bytes of text."""
    sizes: dict[str, int] = {}
    for path in root.rglob("*"):
        if path.is_file():
            table = path.relative_to(root).parts[0]
            sizes[table] = sizes.get(table, 0) + path.stat().st_size
    shares = {name: size / text for name, size in sorted(sizes.items(), key=lambda s: -s[1])}
    return [f"{name} {share:.2f}" for name, share in shares.items() if share >= 0.005]


if __name__ == "__main__":
    sys.exit(main())
