"""Repeated substrings through `assay prepare`, mixtures and `assay forget`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus
import yaml
from corpus_parts import content
from small_corpus import assay

from filters.edits import Edits, applied, edits_of
from mixtures import edited
from mixtures.select import select
from mixtures.spec import load_mixture
from pipeline import corpus
from pipeline.digests import table_digests

NOTICE = " ".join(f"notice{n} of the house{n}" for n in range(12))  # 230 bytes
RULES = "".join(f"第{n}条规定如下请遵守。" for n in "甲乙丙丁戊己庚辛")
CARRIERS = range(0, 30, 3)  # documents that hold one of the two ...
MARKS = "abcdefghijklmnopqrstuvwxyzABCD"  # ... and differ in what stands beside it


def texts() -> list[str]:
    found = []
    for n in range(30):
        own = small_corpus.english(n) if n % 2 else small_corpus.chinese(n)
        if n in CARRIERS:
            own = f"{own} {MARKS[n]}\n{NOTICE if n % 2 else RULES}\n{MARKS[n]} end {n}"
        found.append(own)
    return [*found, found[3]]


def write_inputs(folder: Path) -> Path:
    folder.mkdir(parents=True)
    rows = [{"id": str(n), "text": text} for n, text in enumerate(texts())]
    (folder / "web.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    settings = {
        "inputs": [{"source": "web", "files": "web.jsonl"}],
        "tokenizer": "tokenizer.json",
        "heldout": {"share": 0},
        "substrings": {"min_bytes": 120},
        "edits": ["substrings"],
        "shard_bytes": 5_000,
        "output": "corpus",
    }
    (folder / "corpus.yaml").write_text(yaml.safe_dump(settings), "utf-8")
    return folder / "corpus.yaml"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_inputs(tmp_path_factory.mktemp("substrings") / "made")
    assay(
        "tokenizer",
        "train",
        path,
        "--vocab-size",
        "400",
        "--output",
        path.parent / "tokenizer.json",
    )
    assay("prepare", path, "--workers", "1")
    return path.parent / "corpus"


def again(root: Path, folder: Path, workers: int, **settings: Any) -> Path:
    """The same inputs in another folder, prepared."""
    shutil.copytree(root.parent, folder, ignore=shutil.ignore_patterns("corpus"))
    path = folder / "corpus.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text("utf-8")) | settings), "utf-8")
    assay("prepare", path, "--workers", str(workers))
    return folder / "corpus"


def files(root: Path) -> dict[str, bytes]:
    tables = ("substrings", "edits", "signals/substrings", "joins")
    paths = [path for table in tables for path in (root / table).rglob("part-*")]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def rows(root: Path, table: str) -> list[dict[str, Any]]:
    return pa.concat_tables(map(pq.read_table, corpus.part_paths(root, table))).to_pylist()


def carriers(odd: int) -> list[str]:
    return [text for n, text in enumerate(texts()[:30]) if n in CARRIERS and n % 2 == odd]


def without(text: str) -> str:
    return text.replace(f"\n{NOTICE}\n", "\n").replace(f"\n{RULES}\n", "\n")


def as_edited(root: Path) -> dict[str, str]:
    """Text as it came -> as the stored edits leave it."""
    found = {}
    for path in corpus.part_paths(root, "documents"):
        table = pq.read_table(path, columns=["id", "text"])
        ids = {name: row for row, name in enumerate(table["id"].to_pylist())}
        stored = pq.read_table(root / "edits/substrings" / path.name).to_pylist()
        made = edits_of((ids[e["id"]], e["start"], e["end"], e["kind"], "") for e in stored)
        texts = table["text"].combine_chunks()
        found |= dict(zip(texts.to_pylist(), applied(texts, made).to_pylist(), strict=True))
    return found


def test_one_copy_of_each_stays(root: Path) -> None:
    firsts = {min(carriers(odd), key=content) for odd in (0, 1)}
    assert as_edited(root) == {t: t if t in firsts else without(t) for t in texts()}


def test_two_workers_write_the_same_bytes(root: Path, tmp_path: Path) -> None:
    assert len(corpus.part_paths(root, "documents")) > 3
    assert files(again(root, tmp_path / "two", 2)) == files(root)


def test_another_shard_size_gives_the_same_tables(root: Path, tmp_path: Path) -> None:
    other = again(root, tmp_path / "large", 1, shard_bytes=1_000_000)
    assert len(corpus.part_paths(other, "documents")) == 1
    assert table_digests(other) == table_digests(root)


def mixed(root: Path, where: str, unique: str = "exact", sources: int = 1) -> dict[str, str]:
    """Text as it came -> as a mixture trains on it, of the documents that change."""
    spec = {
        "corpora": {"web": str(root)},
        "sequence_length": 16,
        "unique": unique,
        "edits": ["substrings"],
        "sources": {
            str(n): {"from": "web", "where": f"({where}) and num_bytes % {sources} = {n}"}
            for n in range(sources)
        },
    }
    path = root.parent / "mixture.yaml"
    path.write_text(yaml.safe_dump(spec), "utf-8")
    made: dict[str, str] = {}

    def watched(texts: pa.Array, edits: Edits) -> pa.Array:
        left = applied(texts, edits)
        made.update(zip(texts.to_pylist(), left.to_pylist(), strict=True))
        return left

    shutil.rmtree(root / "edited", ignore_errors=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(edited, "applied", watched)
        select(load_mixture(path))
    return made


def test_a_mixture_of_all_makes_the_stored_edits(root: Path) -> None:
    changed = {text: left for text, left in as_edited(root).items() if text != left}
    assert mixed(root, "true") == changed == mixed(root, "true", sources=2)


def test_where_the_first_place_is_not_selected_the_next_one_keeps_the_text(root: Path) -> None:
    inside = sorted(carriers(1), key=content)
    for num in range(1, len(inside)):
        out = ", ".join(f"'{content(text).hex()}'" for text in inside[:num])
        made = mixed(root, f"content_hash not in ({out}) and num_bytes < 1e9")
        assert {text: made.get(text, text) for text in inside[num:]} == {
            inside[num]: inside[num],
            **{text: without(text) for text in inside[num + 1 :]},
        }


def test_inspect_tells_where_else_a_text_stands(root: Path) -> None:
    _, second, *_ = sorted(carriers(1), key=content)
    ids = {row["text"]: row["id"].hex() for row in rows(root, "documents")}
    shown = json.loads(assay("inspect", root, ids[second], "--json").stdout)
    places = [row for row in shown["substrings"] if row["copies"] == len(carriers(1))]
    assert {row["first"] for row in places} == {False}
    assert {row["also_in"] for row in places} <= {ids[text] for text in carriers(1)}
    begin, end = min(row["start_byte"] for row in places), max(row["end_byte"] for row in places)
    assert second.encode()[begin:end].decode() == f"\n{NOTICE}"
    (edit,) = shown["edits"]
    assert (edit["kind"], edit["text"]) == ("substring", f"\n{NOTICE}")
    own = shown["document"]["substrings"]
    assert own["most_copies"] == len(carriers(1))
    assert 0 < own["score"] == own["repeated"] < 1


def test_what_is_forgotten_keeps_no_text(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "corpus"
    shutil.copytree(root, other)
    first = min(carriers(1), key=content)
    name = next(row["id"] for row in rows(root, "documents") if row["text"] == first)
    (tmp_path / "ids").write_text(name.hex(), "utf-8")
    assay("forget", other, "--ids", tmp_path / "ids", "--reason", "asked", "--delete")
    for table in ("substrings", "edits/substrings"):
        assert name not in {row["id"] for row in rows(other, table)}
    inside = sorted(carriers(1), key=content)[1:]
    made = mixed(other, "true")
    assert {text: made.get(text, text) for text in inside} == {
        inside[0]: inside[0],
        **{text: without(text) for text in inside[1:]},
    }
