"""What `assay export` writes, read by the peers themselves: `python benchmarks/interchange.py`

Makes a small corpus, exports it in every format, and compares what megatron-core, datatrove,
mosaicml-streaming and datasets read with what stands in the corpus. The first call makes an
environment for each (pip, 4 GB in all) in .cache/bench; BENCH_PEERS names another folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from environments import environment

from mixtures.dealing import deal
from mixtures.interchange.export import FORMATS, export
from mixtures.loader import Loader
from mixtures.packed import packing_of
from mixtures.packing import row_of_ids
from mixtures.plan import make_plan
from mixtures.select import select
from mixtures.spec import load_mixture
from mixtures.tokens import TokenShards

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
import small_corpus  # noqa: E402 (it lies with the tests)

PEERS = {  # format -> what its environment holds; streaming wants an older numpy than others
    "megatron": ("torch==2.13.0", "megatron-core==0.16.1"),
    "datatrove": ("torch==2.13.0", "datatrove==0.10.1"),
    "mds": ("torch==2.13.0", "mosaicml-streaming==0.13.0"),
    "parquet": ("datasets==5.2.0",),
}
TOKENS = 200_000
MIXTURE = """corpora: {tales: corpus}
sequence_length: 128
sources: {all: {from: tales, weight: 1, max_epochs: 9}}
"""


def main() -> int:
    pythons = {kind: environment(f"interchange-{kind}", wanted) for kind, wanted in PEERS.items()}
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
        np.savez(folder / "documents.npz", *documents(mixture))
        environ = {**os.environ, "HF_HUB_OFFLINE": "1"}
        environ.pop("PYTHONPATH", None)
        codes = []
        for kind, python in pythons.items():
            command = [python, str(HERE / "interchange_readers.py"), kind, str(folder)]
            codes.append(subprocess.run(command, env=environ, check=False).returncode)
        return max(codes)


def documents(mixture_path: Path) -> list[np.ndarray]:
    """The ids of each document, in packing order."""
    mixture = load_mixture(mixture_path)
    selection = select(mixture)
    root = Path(mixture.corpora["tales"])
    shards = TokenShards(root, selection.tokenizer)
    packing = packing_of(mixture, root, selection.tokenizer)
    found = []
    for part in deal(selection.documents["all"], packing):
        ids = row_of_ids(part, shards, None)
        found += np.split(ids, np.cumsum(part.num_tokens)[:-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
