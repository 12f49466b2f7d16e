from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import schema
from pipeline.files import write_json
from pipeline.unique import near_unique, partners

A, B, C, D = (bytes([n]) * 16 for n in range(1, 5))


def hashes(*names: bytes) -> pa.Array:
    return pa.array(names, schema.HASH)


def write(root: Path, table: str, columns: pa.Schema, rows: list[dict[str, Any]]) -> None:
    path = root / table / "part-00000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, columns), path)


def corpus(root: Path) -> Path:
    """A chain a~b~c, stored as pairs."""
    settings = {"near": {"threshold": 0.8}}
    write_json(root / "corpus.json", {"format": schema.FORMAT_VERSION, "settings": settings})
    pairs = [{"a": A, "b": B, "jaccard": 0.9}, {"a": B, "b": C, "jaccard": 0.9}]
    write(root, "pairs", schema.PAIRS, pairs)
    return root


def test_the_end_of_a_chain_stays(tmp_path: Path) -> None:
    root = corpus(tmp_path)
    assert near_unique(root, hashes(A, B, C)).tolist() == [True, False, True]
    assert near_unique(root, hashes(B, A, C)).tolist() == [True, False, False]
    assert near_unique(root, hashes(C, B, A)).tolist() == [True, False, True]


def test_what_is_not_selected_blocks_nothing(tmp_path: Path) -> None:
    root = corpus(tmp_path)
    assert near_unique(root, hashes(A, C, D)).tolist() == [True, True, True]
    assert partners(root, B, [C, D]) == {C: pytest.approx(0.9)}
    assert near_unique(root, hashes()).tolist() == []


def test_members_of_large_clusters_are_verified_when_asked(tmp_path: Path) -> None:
    root = corpus(tmp_path)
    shingles = {
        A: np.arange(100, dtype=np.uint64),
        B: np.arange(5, 105, dtype=np.uint64),  # Jaccard with a: 95 / 105
        C: np.arange(15, 115, dtype=np.uint64),  # with b: 90 / 110, with a: 85 / 115 = .74
    }
    write(root, "pairs", schema.PAIRS, [])
    members = [{"content_hash": n, "cluster": A, "size": 3, "large": True} for n in shingles]
    write(root, "clusters", schema.CLUSTERS, members)
    rows: list[dict[str, Any]] = [
        {"content_hash": name, "shingles": values} for name, values in shingles.items()
    ]
    write(root, "clusters/shingles", schema.LARGE_CLUSTER_SHINGLES, rows)
    assert near_unique(root, hashes(A, B, C)).tolist() == [True, False, True]
    assert near_unique(root, hashes(D, C, B, A)).tolist() == [True, True, False, True]
    assert partners(root, B, [D, C, A]) == {A: 95 / 105, C: 90 / 110}
    assert partners(root, A, [C, D]) == {}
    assert near_unique(root, hashes(B, D, A, C)).tolist() == [True, True, False, False]


@given(
    st.permutations(range(8)),
    st.integers(0, 8),
    st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda p: p[0] < p[1])),
)
@settings(max_examples=25, deadline=None)
def test_as_the_rule_says(order: list[int], num: int, pairs: set[tuple[int, int]]) -> None:
    """Walk in order of preference; keep one unless one that is kept forms a pair with it."""
    chosen, kept = order[:num], list[int]()
    for content in chosen:
        if not any({(a, content), (content, a)} & pairs for a in kept):
            kept.append(content)
    names = [bytes([n]) * 16 for n in range(8)]
    with tempfile.TemporaryDirectory() as folder:
        rows = [{"a": names[a], "b": names[b], "jaccard": 0.9} for a, b in sorted(pairs)]
        write(Path(folder), "pairs", schema.PAIRS, rows)
        mask = near_unique(Path(folder), hashes(*(names[n] for n in chosen)))
    assert [n for n, keep in zip(chosen, mask.tolist(), strict=True) if keep] == kept
