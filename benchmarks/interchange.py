"""What `assay export` writes, read by the peers themselves: `python benchmarks/interchange.py`

Makes a small corpus, exports it in every format, and compares what megatron-core, datatrove,
mosaicml-streaming and datasets read with the corpus's own ids. The first call makes an environment
for them (pip, about 2 GB) in .cache/bench; BENCH_PEERS names another folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import small_corpus  # noqa: E402

from mixtures.interchange.export import FORMATS, export  # noqa: E402
from mixtures.loader import Loader  # noqa: E402
from mixtures.plan import make_plan  # noqa: E402

REQUIREMENTS = (
    "torch==2.13.0",
    "megatron-core==0.16.1",
    "datatrove[io,processing]==0.10.1",
    "mosaicml-streaming==0.13.0",
    "datasets==5.2.0",
)
TOKENS = 200_000
MIXTURE = """corpora: {tales: corpus}
sequence_length: 128
sources: {all: {from: tales, weight: 1, max_epochs: 9}}
"""


def main() -> int:
    python = environment()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small_corpus.prepare(folder, 200)
        mixture = folder / "mixture.yaml"
        mixture.write_text(MIXTURE)
        for kind, (of_windows, _) in FORMATS.items():
            export(mixture, kind, folder / kind, TOKENS if of_windows else None)
        plan = make_plan(mixture, TOKENS)
        windows = Loader(plan).batch(0, plan.num_windows).tokens
        np.save(folder / "windows.npy", windows)
        environ = {**os.environ, "HF_HUB_OFFLINE": "1"}
        environ.pop("PYTHONPATH", None)
        command = [python, str(HERE / "interchange_readers.py"), str(folder)]
        return subprocess.run(command, env=environ, check=False).returncode


def environment() -> str:
    """The Python of an environment with the peers; made at the first call."""
    folder = Path(os.environ.get("BENCH_PEERS", HERE.parent / ".cache" / "bench")) / "interchange"
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        print(f"making {folder}: a few minutes, once", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *REQUIREMENTS], check=True)
        (folder / ".ready").touch()
    return str(python)


if __name__ == "__main__":
    sys.exit(main())
