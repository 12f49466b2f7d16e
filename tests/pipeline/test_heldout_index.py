"""The index of held-out texts, from its files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dedup.postings import build_index
from dedup.shingles import shingles
from pipeline import schema
from pipeline.dedup_settings import Near
from pipeline.heldout_settings import Heldout
from pipeline.tables import write_rows
from pipeline.transforms import heldout_index

TEXTS = ["the mill stood by the river and the road went past it", "河边有一座磨坊", "", "👍", "one"]


@pytest.mark.parametrize("texts", [TEXTS, TEXTS * 300, [""], []])
def test_the_mapped_index_is_the_one_made_in_memory(tmp_path: Path, texts: list[str]) -> None:
    rows = [
        {"set": "s", "content_hash": n.to_bytes(16, "big"), "language": "en", "source": "w"}
        | {"text": text}
        for n, text in enumerate(texts)
    ]
    write_rows(tmp_path / "heldout/documents.parquet", schema.HELDOUT, rows)
    heldout_index.write(tmp_path, Heldout(containment=0.7), Near())
    found = heldout_index.read(tmp_path)
    made = build_index(*shingles(pa.array(texts, pa.string()), 5), 0.7)
    for mapped, array in zip(found, made, strict=True):
        assert mapped.dtype == array.dtype
        assert mapped.tolist() == array.tolist()
        assert isinstance(mapped.base, np.memmap)
