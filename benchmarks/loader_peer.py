"""One reader of shuffled windows, in a process of its own: `loader_peers.py` calls it.

    python loader_peer.py build|read NAME FOLDER SECONDS

FOLDER has tokens.bin (uint16) and, for ours, plan.pickle. `read` prints tokens per second into
int64 batches after the first one, seconds to the first one (imports apart), and how many MB of
memory the process had after a tenth of the time and at the end.
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import pickle
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

LENGTH, BATCH, SEED = 2_048, 8, 7
WINDOW = LENGTH + 1


def windows(folder: Path) -> np.ndarray:
    """[windows, LENGTH + 1], neighbours sharing one id."""
    flat = np.memmap(folder / "tokens.bin", np.uint16, "r")
    return np.lib.stride_tricks.sliding_window_view(flat, WINDOW)[::LENGTH]


def gather(folder: Path) -> Iterator[Any]:
    flat, lanes = np.memmap(folder / "tokens.bin", np.uint16, "r"), np.arange(WINDOW)
    order = np.random.default_rng(SEED).permutation((len(flat) - 1) // LENGTH)
    for at in range(0, len(order) - BATCH + 1, BATCH):
        yield flat[order[at : at + BATCH, None] * LENGTH + lanes].astype(np.int64)


def ours(folder: Path) -> Iterator[Any]:
    from mixtures.loader import Loader

    loader = Loader(pickle.loads((folder / "plan.pickle").read_bytes()))  # ours
    for at in range(0, len(loader) - BATCH + 1, BATCH):
        yield loader.batch(at, BATCH)


def documents(folder: Path) -> Iterator[Any]:
    """Ours, and where documents begin, which no other one gives."""
    for batch in ours(folder):
        yield batch, batch.documents


def build_streaming(folder: Path, out: Path) -> None:
    from streaming import MDSWriter

    columns = {"tokens": f"ndarray:uint16:{WINDOW}"}
    with MDSWriter(out=str(out), columns=columns, size_limit="64mb") as writer:
        for window in windows(folder):
            writer.write({"tokens": np.ascontiguousarray(window)})


def streaming(out: Path) -> Iterator[Any]:
    import torch
    from streaming import StreamingDataLoader, StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()
    data = StreamingDataset(
        local=str(out), shuffle=True, shuffle_seed=SEED, batch_size=BATCH, num_canonical_nodes=1
    )
    for batch in StreamingDataLoader(data, batch_size=BATCH, num_workers=0, drop_last=True):
        tokens = batch["tokens"]
        yield (tokens if torch.is_tensor(tokens) else torch.from_numpy(np.asarray(tokens))).long()


def build_litdata(folder: Path, out: Path) -> None:
    import litdata

    litdata.optimize(
        fn=_document, inputs=[str(folder / "tokens.bin")], output_dir=str(out), chunk_bytes="64MB",
        num_workers=1, item_loader=litdata.TokensLoader(block_size=WINDOW),
    )  # fmt: skip


def _document(path: str) -> Iterator[Any]:
    import torch

    flat = np.memmap(path, np.uint16, "r")
    for at in range(0, len(flat) // WINDOW, 100):
        yield torch.from_numpy(np.array(flat[at * WINDOW : (at + 100) * WINDOW]))


def litdata(out: Path) -> Iterator[Any]:
    import litdata as peer

    data = peer.StreamingDataset(
        str(out), item_loader=peer.TokensLoader(block_size=WINDOW), shuffle=True, seed=SEED,
        drop_last=True,
    )  # fmt: skip
    for batch in peer.StreamingDataLoader(data, batch_size=BATCH, num_workers=0, drop_last=True):
        yield batch.long()


def build_datasets(folder: Path, out: Path) -> None:
    import datasets as peer

    kind = peer.Sequence(peer.Value("uint16"), length=WINDOW)
    features = peer.Features({"tokens": kind})

    def rows() -> Iterator[dict[str, np.ndarray]]:
        for window in windows(folder):
            yield {"tokens": np.ascontiguousarray(window)}

    made = peer.Dataset.from_generator(rows, features=features, cache_dir=f"{out}.cache")
    made.save_to_disk(str(out))


def datasets(out: Path) -> Iterator[Any]:
    import datasets as peer

    data = peer.load_from_disk(str(out)).shuffle(seed=SEED).with_format("numpy")
    for rows in data.iter(BATCH, drop_last_batch=True):
        yield rows["tokens"].astype(np.int64)


BUILD = {"streaming": build_streaming, "litdata": build_litdata, "datasets": build_datasets}
READ = {
    "ours": ours, "documents": documents, "gather": gather, "streaming": streaming,
    "litdata": litdata, "datasets": datasets,
}  # fmt: skip
HERE = {"ours": "mixtures.loader", "documents": "mixtures.loader", "gather": "numpy"}  # and imports


def without_torchvision() -> None:
    """streaming imports torchvision for its image sets; that is another GB."""
    attributes: dict[str, list[str]] = {
        "torchvision": [], "torchvision.datasets": ["VisionDataset"], "torchvision.transforms": [],
        "torchvision.transforms.functional": ["to_tensor"],
    }  # fmt: skip
    for name, known in attributes.items():
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        for attribute in known:
            setattr(module, attribute, type(attribute, (), {}))
        sys.modules.setdefault(name, module)


def megabytes() -> int:
    """Of memory that is the process's own: pages of files that are mapped are the system's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) // 1_024


def read(name: str, place: Path, seconds: float) -> dict[str, float]:
    __import__(HERE.get(name, name))
    began = time.perf_counter()
    batches = READ[name](place)
    next(batches)
    first = time.perf_counter() - began
    began, cpu, num, early = time.perf_counter(), time.process_time(), 0, 0
    while time.perf_counter() - began < seconds:
        for _ in batches:
            num += 1
            if num % 16 == 0 and time.perf_counter() - began > seconds:
                break
            if not early and time.perf_counter() - began > seconds / 10:
                early = megabytes()
        else:
            batches = READ[name](place)
    tokens = num * BATCH * LENGTH / 1e6
    return {
        "rate": tokens / (time.perf_counter() - began),
        "cpu_rate": tokens / (time.process_time() - cpu),
        "first": first,
        "early_mb": early,
        "late_mb": megabytes(),
    }


if __name__ == "__main__":
    what, peer, folder, seconds = sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])
    if peer == "streaming":
        without_torchvision()
    if what == "build":
        BUILD[peer](folder, folder / peer)
    else:
        found = read(peer, folder if peer in HERE else folder / peer, seconds)
        print(json.dumps(found), flush=True)
    os._exit(0)  # threads of a peer may go on
