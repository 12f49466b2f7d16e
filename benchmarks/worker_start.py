"""What a worker elsewhere costs before its first document: from the wheel, in a clean environment.

    python -m benchmarks.worker_start [FOLDER]

The environment holds the wheel and, by path, what it depends on; nothing of this checkout. Below
stands the size of the job graph, which is what a launcher sends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

from benchmarks.measure import run
from pipeline.files import write_json
from pipeline.settings import CorpusSettings, Input, Tokenizer
from pipeline.stages import Job

ROOT = Path(__file__).resolve().parents[1]
HARNESS = "import apache_beam.runners.worker.sdk_worker_main"
STEPS = f"{HARNESS}, pipeline.build"
STARTS = (  # the third finds no compiled kernels, so it is tried once
    ("Beam's own harness, nothing of ours", HARNESS, 3),
    ("and our steps, as the job unpacks them", STEPS, 3),
    ("and models, tables, kernels: not compiled", f"{STEPS}, pipeline.warm", 1),
    ("the same, kernels compiled (as in the image)", f"{STEPS}, pipeline.warm", 3),
)
NUM_FILES = (1, 1_000, 100_000)


def built(folder: Path) -> Path:
    """The wheel of what is committed here."""
    subprocess.run(["git", "clone", "-q", "--shared", ROOT, folder / "source"], check=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", folder, folder / "source"], check=True)
    return next(folder.glob("assay-*.whl"))


def environment(wheel: Path, folder: Path) -> tuple[Path, dict[str, str]]:
    """The Python of a clean environment with the wheel in it, and its environment variables."""
    venv.create(folder)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return folder / "bin" / "python", variables | {"NUMBA_CACHE_DIR": str(folder / "kernels")}


def job_of(num_files: int, root: Path) -> Job:
    """A corpus of so many input files, a shard each."""
    names = [f"crawl/segment-{n // 100:05d}/file-{n:07d}.warc.gz" for n in range(num_files)]
    files = [{"source": "cc", "path": f"gs://{n}", "file": n, "hash": n} for n in names]
    pieces = [[{"path": "", "file": n, "begin": 0, "num_bytes": 9}] for n in names]
    shards = [{"part": n, "source": "cc", "pieces": piece} for n, piece in enumerate(pieces)]
    write_json(root / "inputs.json", {"shard_bytes": 1, "files": files, "shards": shards})
    settings = CorpusSettings(
        inputs=(Input(source="cc", files="gs://crawl/*/*.warc.gz", kind="web"),),
        languages=("en", "zh"),
        tokenizer=Tokenizer(file="tokenizer.json"),
        output=str(root),
    )
    prints = tuple((stage, "0" * 32) for stage in ("ingest", "tokens", "pairs"))
    return Job(root, settings, "digest", settings.tokenizer, "hash", "tokenizers", prints)


def graph_bytes(job: Job) -> int:
    import apache_beam as beam

    from pipeline.build import build

    pipeline = beam.Pipeline()
    build(pipeline, job)
    return int(pipeline.to_runner_api().ByteSize())


def main(folder: Path) -> None:
    wheel = built(folder)
    python, variables = environment(wheel, folder / "venv")
    print(f"\nwheel: {wheel.stat().st_size / 1e6:.1f} MB; load {os.getloadavg()[0]:.1f}")
    print(f"{'worker start':<46}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}")
    for name, imported, tries in STARTS:
        costs = [run([str(python), "-c", imported], variables) for _ in range(tries)]
        best = min(costs, key=lambda cost: cost.cpu_seconds)
        peak = best.peak_bytes / 1e6
        print(f"{name:<46}{best.cpu_seconds:>8.1f}{best.wall_seconds:>8.1f}{peak:>9.0f}")
    print(f"\n{'job graph: input files':<46}{'bytes':>8}{'inputs.json':>14}")
    for num_files in NUM_FILES:
        size = graph_bytes(job_of(num_files, folder))
        listed = (folder / "inputs.json").stat().st_size
        print(f"{num_files:<46,}{size:>8,}{listed:>14,}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
