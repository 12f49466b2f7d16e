"""Embeddings of texts: an attached group with a column `embedding`, under content hashes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.attach import attached_groups, attached_path
from pipeline.config import ConfigError
from pipeline.files import DAMAGED, file_hash, read_sealed

NAME = "semantic"  # of the group, where nobody says another
COLUMN = "embedding"
UNFINISHED = ".embedding"  # what a killed `assay embed` has made


def require_faiss() -> None:
    """Raises ConfigError where the extra is not installed."""
    if find_spec("faiss") is None:
        raise ConfigError('embeddings are compared by faiss: pip install "assay[semantic]"')


def embeddings(root: Path, group: str) -> tuple[pa.Array, np.ndarray]:
    """Content hashes, ascending, and their embeddings, float32 [num_contents, dimensions].

    Raises:
        ConfigError: there are none of this name, they are damaged, or no lists of equal length.
    """
    path = attached_path(root, group)
    if not path.exists():
        raise ConfigError(
            f"{root} has no embeddings {group!r}; make them with `assay embed {root} --name "
            f"{group} --with my_model.py:embed` (attached: "
            f"{', '.join(attached_groups(root)) or 'nothing'})"
        )
    record = read_sealed(path.with_suffix(".json"))
    if record is None or record["files"] != {path.name: file_hash(path)}:
        raise ConfigError(f"{path} {DAMAGED}; `assay embed {root} --name {group} --replace`")
    table = pq.read_table(path)
    if table.column_names[0] != "content_hash" or COLUMN not in table.column_names:
        raise ConfigError(
            f"{path}: its columns are {', '.join(table.column_names)}; embeddings are attached "
            f"with `--on content_hash`, in a column {COLUMN!r} of lists of numbers"
        )
    table = table.filter(pc.is_valid(table[COLUMN]))
    lists = table[COLUMN].combine_chunks()
    lengths = pc.unique(pc.list_value_length(lists)).to_pylist()
    if len(lengths) > 1:
        raise ConfigError(f"{path}: embeddings of {lengths[0]} and of {lengths[1]} numbers")
    values = np.asarray(lists.flatten(), np.float32).reshape(len(lists), *lengths or [1])
    if not np.isfinite(values).all():
        raise ConfigError(f"{path}: embeddings with NaN or infinity; embed those texts again")
    return table["content_hash"].combine_chunks(), values


def made_by(root: Path, group: str) -> str:
    """Which function made them; "" where it is not known, or there are none."""
    record = read_sealed(attached_path(root, group).with_suffix(".json"))
    return str(record.get("by", "")) if record else ""
