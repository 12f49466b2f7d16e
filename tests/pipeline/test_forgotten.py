"""The list of what a corpus was told to forget: out of sight at once, and known at ingest."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tiny_corpus
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from dedup.shingles import shingles
from pipeline import finished, forgotten, schema
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError
from pipeline.dedup_settings import Near
from pipeline.sql import ask

ENGLISH = "the ferry left the harbour at noon and nobody on the shore had seen it come back since"
CHINESE = "渡船中午离开了港口，岸上的人从那以后再也没有看见它回来，只有灯塔还亮着。"


def rows(*texts: str, why: str = "named") -> pa.Table:
    hashes, offsets = shingles(pa.array(texts, pa.string()))
    sets = np.split(hashes, offsets[1:-1])
    found = [
        {
            "id": schema.document_id("s", "f", number),
            "content_hash": schema.text_hash(text.encode()),
            "why": why,
            "shingles": own,
        }
        for number, (text, own) in enumerate(zip(texts, sets, strict=True))
    ]
    return pa.Table.from_pylist(found, schema.FORGOTTEN)


def group(*texts: str, first: int = 100) -> pa.RecordBatch:
    """Documents as ingest has them; their ids are those of records from `first` on."""
    return pa.RecordBatch.from_pydict(
        {
            "id": pa.array([schema.document_id("s", "f", first + n) for n in range(len(texts))],
                           schema.HASH),
            "content_hash": pa.array([schema.text_hash(t.encode()) for t in texts], schema.HASH),
            "text": pa.array(texts, pa.string()),
        }
    )  # fmt: skip


def test_a_list_only_grows(tmp_path: Path) -> None:
    assert forgotten.listed(tmp_path) == []
    one = forgotten.add(tmp_path, rows(ENGLISH), "asked", 5)
    data = {p.name: p.read_bytes() for p in (tmp_path / "forgotten").iterdir()}
    two = forgotten.add(tmp_path, rows(CHINESE, "third"), "robots", 5)
    assert [call.number for call in forgotten.listed(tmp_path)] == [1, 2]
    assert (one.reason, one.documents) == ("asked", {"named": 1})
    assert (two.reason, two.documents, two.done) == ("robots", {"named": 2}, False)
    assert all((tmp_path / "forgotten" / name).read_bytes() == old for name, old in data.items())
    assert len(forgotten.contents([one, two])) == 3
    forgotten.receipt_path(tmp_path / "forgotten", 1).write_text("{}")
    assert [call.done for call in forgotten.listed(tmp_path)] == [True, False]


@pytest.mark.parametrize("name", ["00000001.json", "00000001.parquet"])
def test_a_damaged_list_is_named(tmp_path: Path, name: str) -> None:
    """Without it forgotten text would come back."""
    forgotten.add(tmp_path, rows(ENGLISH), "asked", 5)
    path = tmp_path / "forgotten" / name
    path.write_bytes(path.read_bytes().replace(b"0", b"1"))
    with pytest.raises(CorpusError, match=rf"{name} is damaged .* put it back from a copy"):
        forgotten.listed(tmp_path)


def test_what_is_known_at_ingest(tmp_path: Path) -> None:
    """By id, by content, as a near copy; not what contains it, nor what is merely like it."""
    assert forgotten.checker(tmp_path, Near()) is None
    forgotten.add(tmp_path, rows(ENGLISH * 4, CHINESE * 3), "asked", 5)
    check = forgotten.checker(tmp_path, Near())
    assert check is not None
    texts = {
        ENGLISH * 4: True,
        ENGLISH.upper() * 4 + " Yes.": True,
        CHINESE * 3 + "是的。": True,
        CHINESE.replace("，", " ") * 3: True,
        ENGLISH * 4 + " and then " + " ".join(f"word{n}" for n in range(60)): False,
        "the ferry left the harbour": False,
        "": False,
        "cat": False,
    }
    assert check(group(*texts)).tolist() == list(texts.values())
    assert check(group("another text in its place", first=1)).tolist() == [True], "the same id"


def test_other_settings_of_shingles_are_refused(tmp_path: Path) -> None:
    forgotten.add(tmp_path, rows(ENGLISH), "asked", 5)
    with pytest.raises(ConfigError, match=r"key `near.ngram`: 3, but .* of 5 words.*; put 5 back"):
        forgotten.checker(tmp_path, Near(ngram=3))


@hypothesis_settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["a b c", "ab", "", "中文", "a b c d e f g", "🙂 x"]), max_size=8))
def test_a_checker_is_the_definition(texts: list[str]) -> None:
    """Equal shingle sets have Jaccard 1; here no two others come near .8."""
    table = rows("a b c d e f g", "中文")
    index = forgotten._index(table["shingles"].combine_chunks().drop_null(), 0.8)
    ids, contents = (table[n].combine_chunks() for n in ("id", "content_hash"))
    known = forgotten.Known(ids, contents, index, 5, 0.8)
    expected = [text in ("a b c d e f g", "中文") for text in texts]
    assert forgotten._forgotten(known, group(*texts)).tolist() == expected


# --- readers --------------------------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return tiny_corpus.write(tmp_path / "tiny")


def answer(root: Path, sql: str) -> list[tuple[object, ...]]:
    with ask(root, sql, macros={}, timeout_seconds=60) as batches:
        return [tuple(row.values()) for row in batches.read_all().to_pylist()]


def listing(*texts: str) -> pa.Table:
    return rows(*texts)


def test_out_of_every_view_at_once(corpus: Path) -> None:
    """Before a byte is rewritten; copies have the same content."""
    everything = "select count(*), sum(num_bytes), sum(num_tokens) from documents"
    assert answer(corpus, everything)[0][0] == 8
    forgotten.add(corpus, listing(tiny_corpus.TEXTS["web"][0]), "asked", 5)
    assert answer(corpus, everything) == [(6, 112, 35)]
    assert answer(corpus, "select source, documents from sources") == [("qa", 3), ("web", 3)]
    assert answer(corpus, "select count(*) from documents where text like '%on the mat%'") == [(0,)]
    near = answer(corpus, "select near_duplicate from documents where text like '%a mat%'")
    assert near == [(False,)], "what it was a near copy of is gone"


def test_readers_of_the_state_before_see_the_list(corpus: Path) -> None:
    """While `prepare` changes a corpus its last finished state is read."""
    finished.set_aside(corpus)
    before = finished.standing(corpus)
    assert before != corpus
    forgotten.add(corpus, listing(tiny_corpus.TEXTS["web"][3]), "asked", 5)
    assert answer(before, "select count(*) from documents") == [(7,)]


def test_a_row_of_which_identity_is_left_is_no_document(corpus: Path) -> None:
    from pipeline.rewriting import Gone, _documents

    texts = tiny_corpus.TEXTS["web"]
    call = forgotten.add(corpus, listing(texts[3]), "asked", 5)
    gone = np.array([text == texts[3] for text in texts])
    none = pa.array([], schema.HASH)
    _documents(corpus / "documents/part-00000.parquet", Gone(none, none, gone))
    forgotten.receipt_path(corpus / "forgotten", call.number).write_text("{}")
    assert answer(corpus, "select count(*), count(text) from documents") == [(7, 7)]
    assert answer(corpus, "select part, documents from shards") == [(0, 4), (1, 3)]
    assert len(answer(corpus, "select domain, compression_ratio from domains")) == 1


def test_a_copy_of_a_corpus_takes_its_list_along(corpus: Path, tmp_path: Path) -> None:
    forgotten.add(corpus, listing(tiny_corpus.TEXTS["web"][0]), "asked", 5)
    shutil.copytree(corpus, tmp_path / "copy")
    assert answer(tmp_path / "copy", "select count(*) from documents") == [(6,)]
