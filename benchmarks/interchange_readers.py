"""Run by interchange.py in an environment of the peers: read each export, compare, print a line."""

from __future__ import annotations

import importlib.machinery
import sys
import types
from pathlib import Path

import numpy as np


def megatron(folder: Path) -> list[list[int]]:
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    data = IndexedDataset(str(folder / "megatron" / "all"))
    assert len(data.document_indices) == len(data) + 1
    return [data[number].tolist() for number in range(len(data))]


def datatrove(folder: Path, wanted: list[list[int]]) -> list[list[int]]:
    """Its windows, cut where it says that a document begins; at the start of a window it always
    does, so those are taken from `wanted`. What fills no window is not read."""
    from datatrove.utils.dataset import DatatroveFileDataset

    path, length = str(folder / "datatrove" / "all.ds"), 64
    data = DatatroveFileDataset(path, seq_len=length - 1, token_size=2, return_positions=True)
    rows = [data[number] for number in range(len(data))]
    ids = np.concatenate([row["input_ids"].numpy() for row in rows])
    begins = np.flatnonzero(np.concatenate([row["positions"].numpy() for row in rows]) == 0)
    known = np.cumsum([len(document) for document in wanted])
    at_windows = known[(known % length == 0) & (known < len(ids))]
    begins = np.union1d(begins[begins % length > 0], at_windows)
    return [part.tolist() for part in np.split(ids, begins)]


def mds(folder: Path) -> np.ndarray:
    _without_torchvision()
    from streaming import StreamingDataset

    data = StreamingDataset(
        local=str(folder / "mds"), shuffle=False, batch_size=1, validate_hash="xxh3_64"
    )
    return np.stack([data[number]["tokens"] for number in range(len(data))])


def _without_torchvision() -> None:
    """streaming asks for it, for pictures; its wheel does not load beside torch's CPU build."""
    names = {
        "torchvision": (),
        "torchvision.datasets": ("VisionDataset",),
        "torchvision.transforms": (),
        "torchvision.transforms.functional": ("to_tensor",),
    }
    for name, attributes in names.items():
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        for attribute in attributes:
            setattr(module, attribute, type(attribute, (), {}))
        sys.modules[name] = module


def huggingface(folder: Path) -> np.ndarray:
    from datasets import load_dataset

    data = load_dataset(str(folder / "parquet"), split="train", streaming=True)
    return np.stack([row["input_ids"] for row in data])


def main(kind: str, folder: Path) -> int:
    if kind in ("mds", "parquet"):
        found = mds(folder) if kind == "mds" else huggingface(folder)
        assert np.array_equal(found, np.load(folder / "windows.npy")), f"{kind} reads others"
        print(f"{kind}: {len(found)} windows, those of the run, in its order")
        return 0
    stored = np.load(folder / "documents.npz")
    wanted = [stored[name].tolist() for name in stored.files]
    documents = megatron(folder) if kind == "megatron" else datatrove(folder, wanted)
    if kind == "datatrove":  # what fills no window of it is not read
        wanted = wanted[: len(documents)]
        wanted[-1] = wanted[-1][: len(documents[-1])]
    assert documents == wanted, f"{kind} reads others"
    print(f"{kind}: {len(documents)} documents, {sum(map(len, documents)):,} tokens, as they stand")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
