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

from dedup import clusters
from dedup.shingles import shingles
from pipeline import schema
from pipeline.corpus import part_paths
from pipeline.dedup_settings import Near
from pipeline.tables import read_columns
from pipeline.transforms import near, near_join
from pipeline.transforms.sweep import sweep

NEAR = Near()
WORDS = [f"{a}{b}" for a in "ba be bi bo da de di do ka ke ki ko".split() for b in "lmnrst"]
HANS = "海边山谷城里河岸院子车站集市学校庙前田间桥头村口码头林中楼上湖心老师渔夫医生孩子木匠船长"


def join(root: Path, parts: list[int], num: int = 3) -> dict[str, dict[str, Any]]:
    """All steps, one after another, in `num` partitions; their counters."""
    counters = {f"sign {part}": sign(root, NEAR, part) for part in parts}
    for partition in range(num):
        counters[f"forest {partition}"] = near_join.forest(root, NEAR, parts, partition, num)
    counters["join"] = near_join.join(root, num)
    counters |= {f"shingle {part}": near.shingle(root, NEAR, part, num) for part in parts}
    for partition in range(num):
        counters[f"verify {partition}"] = near_join.verify(root, NEAR, parts, partition, num)
    return counters


def sign(root: Path, settings: Near, part: int) -> dict[str, Any]:
    return sweep(root, part, {"sign": near.sign(root, settings, part)}, settings.ngram, ("url",))[
        "sign"
    ][0]


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


@pytest.mark.parametrize(("num_parts", "num_partitions"), [(1, 1), (3, 2), (3, 8)])
def test_pairs_are_those_of_an_exact_join(
    tmp_path: Path, num_parts: int, num_partitions: int
) -> None:
    texts = edited(17)
    parts = corpus_parts.write(tmp_path, (texts[p::num_parts] for p in range(num_parts)))
    join(tmp_path, parts, num_partitions)
    expected = all_pairs(texts)
    assert (len(texts), len(expected)) == (120, 52)
    assert pairs(tmp_path) == expected
    clustered = {row["content_hash"] for row in rows(tmp_path, "clusters")}
    assert clustered == {name for pair in expected for name in pair}


def test_rows_are_ordered_and_clusters_hold_together(tmp_path: Path) -> None:
    texts = edited(5)
    join(tmp_path, corpus_parts.write(tmp_path, (texts[p::3] for p in range(3))), 2)
    expected = all_pairs(texts)
    for path in part_paths(tmp_path, "pairs"):
        found = [(row["a"], row["b"]) for row in pq.read_table(path).to_pylist()]
        assert found == sorted(found)
        assert set(found) <= set(expected)
    leaders = {row["content_hash"]: row["cluster"] for row in rows(tmp_path, "clusters")}
    assert all(leaders[a] == leaders[b] for a, b in expected)
    for row in rows(tmp_path, "clusters"):
        members = [name for name, leader in leaders.items() if leader == row["cluster"]]
        assert (row["cluster"], row["size"]) == (min(members), len(members))
        assert row["large"] is False


def test_a_component_too_large_for_pairs_keeps_its_shingles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are copied a slice at a time: of one giant component the rest stays on disk."""
    copied: list[int] = []
    copy = near_join._shingles

    def counted(root: Path, places: near_join.Places) -> pa.LargeListArray:
        copied.append(len(places))
        return copy(root, places)

    monkeypatch.setattr(near_join, "_shingles", counted)
    monkeypatch.setattr(near_join, "SLICE_ROWS", 2)
    monkeypatch.setattr(clusters, "MAX_STORED", 3)
    words = random.Random(3).choices(WORDS, k=80)
    family = [" ".join([*words, f"end{n}"]) for n in range(5)]
    other = " ".join(random.Random(4).choices(WORDS, k=80))
    texts = [*family, other, f"{other} end"]
    counters = join(tmp_path, corpus_parts.write(tmp_path, [texts[:4], texts[3:]]), 1)
    assert counters["verify 0"] == {"pairs": 1, "clustered": 7, "large": 5}
    assert copied == [2, 2, 2, 1]  # the small component, then slices of the large one
    assert list(pairs(tmp_path)) == [tuple(sorted(map(content, texts[5:])))]
    names = sorted(map(content, family))
    stored = rows(tmp_path, "clusters/shingles")
    assert [row["content_hash"] for row in stored] == names
    hashes, offsets = shingles(pa.array(sorted(family, key=content)), NEAR.ngram)
    assert [row["shingles"] for row in stored] == [
        part.tolist() for part in np.split(hashes, offsets[1:-1])
    ]
    large = [row for row in rows(tmp_path, "clusters") if row["large"]]
    assert [row["content_hash"] for row in large] == names
    assert {(row["cluster"], row["size"]) for row in large} == {(names[0], 5)}


def test_partitions_grow_with_the_text_by_powers_of_two() -> None:
    sizes = [0, 1, near_join.PARTITION_BYTES, near_join.PARTITION_BYTES + 1, 20_000_000_000]
    assert [near_join.partitions(size) for size in sizes] == [1, 1, 1, 2, 256]
    many = near_join.MANY_PARTITIONS * near_join.PARTITION_BYTES
    assert [near_join.partitions(size) for size in (many, many + 1, 4 * many)] == [1024, 1024, 2048]
    assert [near_join.partitions(tb * 10**12) for tb in (3, 300)] == [8_192, 65_536]


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


def test_texts_that_share_a_band_and_little_else_are_no_candidates(tmp_path: Path) -> None:
    """Bands of one value: of 21, texts of Jaccard .2 share one all but always."""
    settings = Near(rows=1)
    pick = random.Random(6)
    common = [pick.choice(WORDS) for _ in range(80)]
    texts = [" ".join(common + [pick.choice(WORDS) for _ in range(120)]) for _ in range(40)]
    parts = corpus_parts.write(tmp_path, [texts[:20], [*texts[20:], f"{texts[0]} end"]])
    for part in parts:
        sign(tmp_path, settings, part)
    keys = [
        read_columns(near.sign_outputs(tmp_path, part)[0], schema.BAND_KEYS)[0] for part in parts
    ]
    assert len(np.unique(np.concatenate(keys))) < 600  # of 41 x 21
    assert near_join.forest(tmp_path, settings, parts, 0, 1) == {"band_keys": 861, "edges": 1}


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
    columns = read_columns(near.components_output(tmp_path), schema.COMPONENTS)
    assert [len(column) for column in columns] == [0, 0]
