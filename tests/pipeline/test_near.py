"""The join for near duplicates against all pairs, for any parts, and where there is nothing."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import corpus_parts
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_parts import content

from dedup.shingles import shingles
from pipeline import schema
from pipeline.corpus import part_paths
from pipeline.settings import Near
from pipeline.tables import read_columns
from pipeline.transforms import near
from pipeline.transforms.sweep import sweep

NEAR = Near()
WORDS = [f"{a}{b}" for a in "ba be bi bo da de di do ka ke ki ko".split() for b in "lmnrst"]
HANS = "海边山谷城里河岸院子车站集市学校庙前田间桥头村口码头林中楼上湖心老师渔夫医生孩子木匠船长"


def join(root: Path, parts: list[int], settings: Near = NEAR) -> dict[str, dict[str, Any]]:
    """All steps, one after another; their counters."""
    counters = {f"sign {part}": sign(root, settings, part) for part in parts}
    for partition in range(near.NUM_PARTITIONS):
        counters[f"forest {partition}"] = near.forest(root, parts, partition)
    counters["join"] = near.join(root)
    counters |= {f"shingle {part}": near.shingle(root, settings, part) for part in parts}
    for partition in range(near.NUM_PARTITIONS):
        counters[f"verify {partition}"] = near.verify(root, settings, parts, partition)
    return counters


def sign(root: Path, settings: Near, part: int) -> dict[str, Any]:
    return sweep(root, part, {"sign": near.sign(root, settings, part)}, settings.ngram)["sign"][0]


def rows(root: Path, table: str) -> list[dict[str, Any]]:
    return pa.concat_tables(map(pq.read_table, part_paths(root, table))).to_pylist()


def pairs(root: Path) -> dict[tuple[bytes, bytes], float]:
    return {(row["a"], row["b"]): row["jaccard"] for row in rows(root, "pairs")}


def all_pairs(texts: list[str]) -> dict[tuple[bytes, bytes], float]:
    """The definition: every pair of distinct contents, by their sets of shingles."""
    named = {content(text): text for text in texts}
    names = sorted(named)
    hashes, offsets = shingles(pa.array([named[n] for n in names], pa.string()), NEAR.ngram)
    sets = [set(s.tolist()) for s in np.split(hashes, offsets[1:-1])]
    found = {}
    for (a, left), (b, right) in itertools.combinations(zip(names, sets, strict=True), 2):
        if len(left & right) >= NEAR.threshold * max(1, len(left | right)):
            found[a, b] = float(np.float32(len(left & right) / len(left | right)))
    return found


def edited(seed: int) -> list[str]:
    """Families of texts in English words and in Han, each member with 0 to 5 words replaced."""
    pick = random.Random(seed)
    texts = []
    for family in range(40):
        units = WORDS if family % 2 else list(HANS)
        original = [pick.choice(units) for _ in range(pick.randint(60, 300))]
        for _ in range(pick.randint(1, 6)):
            words = list(original)
            for _ in range(pick.randint(0, 5)):
                words[pick.randrange(len(words))] = pick.choice(units)
            texts.append((" " if units is WORDS else "").join(words))
    return texts


@pytest.mark.parametrize("num_parts", [1, 3])
def test_pairs_are_those_of_an_exact_join(tmp_path: Path, num_parts: int) -> None:
    texts = edited(17)
    parts = corpus_parts.write(tmp_path, (texts[p::num_parts] for p in range(num_parts)))
    join(tmp_path, parts)
    expected = all_pairs(texts)
    assert (len(texts), len(expected)) == (120, 52)
    assert pairs(tmp_path) == expected
    clustered = {row["content_hash"] for row in rows(tmp_path, "clusters")}
    assert clustered == {name for pair in expected for name in pair}


def test_one_text_ten_thousand_times_joins_once_a_part(tmp_path: Path) -> None:
    text = " ".join(random.Random(1).choices(WORDS, k=60))
    parts = corpus_parts.write(tmp_path, [[text] * 10_000, [text, f"{text} end"]])
    counters = join(tmp_path, parts)
    assert counters["sign 0"] == {
        "documents": 10_000,
        "contents": 1,
        "shingles": 560_000,
        "band_keys": NEAR.bands,
    }
    assert counters["shingle 0"] == {"candidates": 1}
    assert counters["shingle 1"] == {"candidates": 2}
    assert list(pairs(tmp_path)) == [tuple(sorted([content(text), content(f"{text} end")]))]


def test_copies_in_one_part_alone_are_no_candidates(tmp_path: Path) -> None:
    text = " ".join(random.Random(2).choices(WORDS, k=60))
    counters = join(tmp_path, corpus_parts.write(tmp_path, [[text] * 50]))
    assert counters["join"] == {"candidates": 0, "components": 0}
    assert pairs(tmp_path) == {}


@pytest.mark.parametrize("parts", [[], [[]], [[], ["", "one", "😀"], []]])
def test_nothing_to_join(tmp_path: Path, parts: list[list[str]]) -> None:
    """No parts at all, parts whose records were all rejected, texts without shingles."""
    join(tmp_path, corpus_parts.write(tmp_path, parts))
    for table, columns in (
        ("pairs", schema.PAIRS),
        ("clusters", schema.CLUSTERS),
        ("clusters/shingles", schema.LARGE_CLUSTER_SHINGLES),
    ):
        found = pa.concat_tables(map(pq.read_table, part_paths(tmp_path, table)))
        assert found.schema == columns
        assert found.num_rows == 0
    assert [len(column) for column in read_columns(near.components_output(tmp_path))] == [0, 0]
