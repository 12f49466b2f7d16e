"""Documents that stand several times, by the size of their cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from mixture_corpus import Doc, Tiny, write_corpus
from mixture_corpus import _write as write_rows

from mixtures.dealing import Documents, _turns, deal
from mixtures.packed import Packing
from mixtures.packing import pack
from mixtures.plan import make_plan
from mixtures.rehydration import PRESETS, dealt, times
from mixtures.select import Selection, select
from mixtures.spec import load_mixture
from pipeline import schema
from pipeline.config import ConfigError
from pipeline.seeing.asking import rows

PACKING = Packing(seed=5, sequence_length=8, tokenizer="0123456789abcdef", tokens="")


def corpus(root: Path) -> Tiny:
    """a three times and near copies b and c (cluster of 5 documents); d twice; e once."""
    docs = [Doc("text a"), Doc("text b"), Doc("text c"), Doc("text a"), Doc("text a")]
    docs += [Doc("text d"), Doc("text d"), Doc("text e")]
    write_corpus(root / "web", Tiny(docs, pairs=[(0, 1), (1, 2), (0, 2)]), shard_rows=3)
    contents = sorted({doc.content for doc in docs[:3]})
    members = [
        {"content_hash": c, "cluster": contents[0], "size": 3, "large": False} for c in contents
    ]
    write_rows(root / "web/clusters/part-00000.parquet", members, schema.CLUSTERS)
    return Tiny(docs)


def mixture(root: Path, **source: Any) -> Path:
    path = root / "mixture.yaml"
    spec = {"corpora": {"web": "web"}, "sequence_length": 8, "seed": 5}
    path.write_text(yaml.safe_dump(spec | {"sources": {"all": {"from": "web", **source}}}), "utf-8")
    return path


def chosen(root: Path, **source: Any) -> Selection:
    return select(load_mixture(mixture(root, **source)))


def test_fineweb2s_weights() -> None:
    sizes = np.array([1, 2, 3, 4, 5, 99, 100, 999, 1000, 10**6])
    assert times("fineweb2", sizes).tolist() == [1, 2, 3, 3, 5, 5, 8, 8, 1, 1]
    assert times(PRESETS["fineweb2"], np.array([], np.int64)).tolist() == []


def test_cluster_size_counts_documents(tmp_path: Path) -> None:
    tiny = corpus(tmp_path)
    found = rows(tmp_path / "web", "select id, cluster_size from documents")
    sizes = {row["id"]: row["cluster_size"] for row in found}
    assert [sizes[tiny.id(n)] for n in range(8)] == [5, 5, 5, 5, 5, 2, 2, 1]
    (row,) = rows(tmp_path / "web", "select count(*) as n from documents where cluster_size > 2")
    assert row["n"] == 5


def test_what_is_left_stands_as_often_as_its_size_says(tmp_path: Path) -> None:
    tiny = corpus(tmp_path)
    once, repeated = chosen(tmp_path), chosen(tmp_path, repeats="fineweb2")
    names = [tiny.docs[n].text for n in tiny.numbers(once.documents["all"].id)]
    assert sorted(names)[1:] == ["text d", "text e"]
    many = [tiny.docs[n].text for n in tiny.numbers(repeated.documents["all"].id)]
    assert {name: many.count(name) for name in names} == {
        name: {"text d": 2, "text e": 1}.get(name, 5) for name in names
    }
    (count,) = repeated.counts
    assert (count.documents, count.times, count.num_bytes) == (3, 8, 8 * 6)
    assert once.counts[0].times == once.counts[0].documents == 3


def test_own_steps(tmp_path: Path) -> None:
    corpus(tmp_path)
    assert chosen(tmp_path, repeats={1: 1, 3: 2}).counts[0].times == 4


def test_copies_of_a_document_are_dealt_apart(tmp_path: Path) -> None:
    ids = np.array([b"a" * 16] * 3 + [b"b" * 16, b"c" * 16, b"c" * 16]).view("V16")
    assert _turns(ids).tolist() == [0, 1, 2, 0, 0, 1]
    assert _turns(ids[:0]).tolist() == []
    corpus(tmp_path)
    (dealt,) = deal(chosen(tmp_path, repeats="fineweb2").documents["all"], PACKING)
    order = [name.tobytes() for name in dealt.id]
    assert len(order) == 8
    assert order != sorted(order, key=order.index)  # not one behind the other


def test_windows_hold_every_turn(tmp_path: Path) -> None:
    corpus(tmp_path)
    documents = chosen(tmp_path, repeats={1: 3}).documents["all"]
    packed = pack(tmp_path / "web", documents, PACKING)
    assert packed.num_documents == 9
    assert packed.tokens_in == 9 * 7  # six bytes and the end of text
    plan = make_plan(mixture(tmp_path, repeats={1: 3}), 40)
    assert (plan.sources[0].documents, plan.sources[0].num_tokens) == (3, 63)
    assert plan.fingerprint != make_plan(mixture(tmp_path), 16).fingerprint


@pytest.mark.parametrize("repeats", [{2: 2}, {}, {1: 0}, "fineweb3", {"a": 1}])
def test_what_cannot_be(tmp_path: Path, repeats: Any) -> None:
    corpus(tmp_path)
    with pytest.raises(ConfigError, match="repeats"):
        load_mixture(mixture(tmp_path, repeats=repeats))


def test_the_corpus_is_left_as_it_was(tmp_path: Path) -> None:
    corpus(tmp_path)
    paths = sorted((tmp_path / "web/documents").glob("*.parquet"))
    before = [pq.read_table(path) for path in paths]
    chosen(tmp_path, repeats="fineweb2")
    assert [pq.read_table(path) for path in paths] == before


# --- by an expression -----------------------------------------------------------------------------


def test_fractions_are_dealt_by_seed_and_id() -> None:
    ids = np.array([n.to_bytes(16, "little") for n in range(20_000)], "V16")
    values = np.full(len(ids), 1.3)
    found = dealt(values, ids, seed=5)
    assert set(found.tolist()) == {1, 2}
    assert abs(found.mean() - 1.3) < 4 * np.sqrt(0.3 * 0.7 / len(ids))
    assert found.tolist() == dealt(values, ids, seed=5).tolist()
    assert found.tolist() != dealt(values, ids, seed=6).tolist()
    assert (dealt(values + 0.2, ids, seed=5) >= found).all()
    assert dealt(values[::-1], ids[::-1], seed=5)[::-1].tolist() == found.tolist()
    assert dealt(np.array([1.0, 2.0, 100.0]), ids[:3], 5).tolist() == [1, 2, 100]


def test_what_stands_once_more_is_anywhere_in_the_order() -> None:
    """Were it drawn by the hash that orders documents, all of it would stand at the beginning."""
    ids = np.array(sorted(n.to_bytes(16, "big") for n in range(4_000)), "V16")
    ones = np.ones(len(ids), np.int64)
    columns = {"content_hash": ids, "part": ones, "row": ones, "num_bytes": ones, "edits": ids}
    documents = Documents(id=ids, num_tokens=ones, **columns)
    (dealt_out,) = deal(documents, PACKING)
    twice = (dealt(ones * 1.5, ids, PACKING.seed) == 2).tolist()
    again = dict(zip(ids.tolist(), twice, strict=True))
    halves = np.array([again[name] for name in dealt_out.id.tolist()]).reshape(2, -1).mean(axis=1)
    assert np.abs(halves - 0.5).max() < 4 * np.sqrt(0.25 / 2_000)


@pytest.mark.parametrize("value", [0.5, 0.0, -1.0, np.nan, np.inf, 100.5])
def test_what_no_document_can_stand(value: float) -> None:
    with pytest.raises(ValueError, match=r"is \S+ for document 61\w+, and not from 1 to 100 for 1"):
        dealt(np.array([1.5, value]), np.array([b"b" * 16, b"a" * 16], "V16"), 5)


def test_a_source_is_upsampled_by_a_column(tmp_path: Path) -> None:
    docs = [Doc("text a", score=0.0), Doc("text b", score=1.0), Doc("text c", score=None)]
    tiny = Tiny(docs)
    write_corpus(tmp_path / "web", tiny)
    by = {"repeats_by": "1 + 2 * coalesce(quality.score, 0.5)"}
    found = chosen(tmp_path, **by)
    assert tiny.numbers(found.documents["all"].id) == [0, 1, 1, 1, 2, 2]
    assert (found.counts[0].documents, found.counts[0].times) == (3, 6)
    assert (found.counts[0].num_tokens, found.counts[0].unique_tokens) == (42, 21)
    for wrong, message in {
        "1 + quality.score": "is NULL for 1 document of 3; say how often these stand, as in `coal",
        "coalesce(quality.score, 1)": rf"is 0 for document {tiny.id(0)}, and not from 1 to 100 for",
    }.items():
        with pytest.raises(ConfigError) as error:
            chosen(tmp_path, repeats_by=wrong)
        told = f"{tmp_path}/mixture.yaml: source 'all': `repeats_by: {wrong}` {message}"
        assert str(error.value).startswith(told)
    with pytest.raises(ConfigError, match=r"key `sources.all.repeats_by`: corpus 'web' cannot be"):
        chosen(tmp_path, repeats_by="lang")
