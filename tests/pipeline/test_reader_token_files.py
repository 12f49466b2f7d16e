from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import small_corpus
from tokenizers import Tokenizer

from mixtures.interchange import datatrove, megatron
from pipeline.config import ConfigError
from pipeline.inputs import input_files
from pipeline.readers import Bad, Record
from pipeline.readers.formats import cut, read
from pipeline.settings import CorpusSettings, Input, load_corpus
from pipeline.sql import ask

TEXTS = ["The cat sat.", "", "今天天气很好，我们去公园。", "a" * 500, "emoji 😀 and é"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decode")
    settings = small_corpus.write_inputs(folder, 40)
    file = folder / "tokenizer.json"
    small_corpus.assay("tokenizer", "train", settings, "--vocab-size", "600", "--output", file)
    return file


def written(folder: Path, tokenizer: Path, kind: str, dtype: type) -> Path:
    made = Tokenizer.from_file(str(tokenizer))
    end = made.token_to_id("<|endoftext|>")
    ids = [np.array([*made.encode(text).ids, end], dtype) for text in TEXTS]
    chunks = [(np.concatenate(ids[:2]), np.array([len(i) for i in ids[:2]]))]
    chunks += [(np.concatenate(ids[2:]), np.array([len(i) for i in ids[2:]]))]
    module = {"megatron": megatron, "datatrove": datatrove}[kind]
    return module.write(folder / "old", iter(chunks))[0]


def records(path: Path, tokenizer: Path, shard_bytes: int = 10**6) -> list[Record | Bad]:
    source = Input(source="old", files=str(path), decode=str(tokenizer))
    pieces = cut(str(path), path.name, shard_bytes)
    assert pieces is not None
    return [record for piece in pieces for record in read(piece, source, "resiliparse")]


@pytest.mark.parametrize("kind", ["megatron", "datatrove"])
@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("shard_bytes", [1, 10**6])
def test_texts_come_back(
    tmp_path: Path, tokenizer: Path, kind: str, dtype: type, shard_bytes: int
) -> None:
    path = written(tmp_path, tokenizer, kind, dtype)
    found = records(path, tokenizer, shard_bytes)
    assert [(r.offset, r.text) for r in found if isinstance(r, Record)] == list(enumerate(TEXTS))
    pieces = cut(str(path), path.name, shard_bytes)
    assert pieces is not None
    assert len(pieces) == (5 if shard_bytes == 1 else 1)


def test_sequences_of_one_document_are_one(tmp_path: Path, tokenizer: Path) -> None:
    """Megatron may split a document into sequences: borders of documents count, not theirs."""
    path = written(tmp_path, tokenizer, "megatron", np.uint16)
    index = bytearray(path.with_suffix(".idx").read_bytes())
    index[26:34] = (4).to_bytes(8, "little")
    begin = 34 + 12 * 5
    index[begin:] = np.array([0, 3, 4, 5], "<i8").tobytes()
    path.with_suffix(".idx").write_bytes(index)
    found = [record.text for record in records(path, tokenizer) if isinstance(record, Record)]
    assert found == ["".join(TEXTS[:3]), *TEXTS[3:]]


def test_what_is_broken_is_a_reject(tmp_path: Path, tokenizer: Path) -> None:
    path = written(tmp_path, tokenizer, "datatrove", np.uint16)
    data = np.fromfile(path, "<u2")
    data[2] = 60_000
    data.tofile(path)
    bad, *others = records(path, tokenizer)
    assert isinstance(bad, Bad)
    assert (bad.offset, bad.reason) == (0, "bad_token")
    assert "token id 60000" in bad.detail
    assert len(others) == 4

    data[:-1].tofile(path)
    [bad] = records(path, tokenizer)
    assert isinstance(bad, Bad)
    assert bad.reason == "bad_index"
    assert "the index ends at" in bad.detail

    Path(f"{path}.index").unlink()
    [bad] = records(path, tokenizer)
    assert isinstance(bad, Bad)
    assert bad.reason == "bad_index"
    assert "old.ds.index beside it, which says where its documents end" in bad.detail

    path = written(tmp_path, tokenizer, "megatron", np.uint16)
    path.with_suffix(".idx").write_bytes(b"not an index")
    [bad] = records(path, tokenizer)
    assert isinstance(bad, Bad)
    assert "no index of Megatron" in bad.detail


def test_prepare_reads_what_export_wrote(tmp_path: Path, tokenizer: Path) -> None:
    folder = tmp_path / "first"
    small_corpus.write_inputs(folder, 40)
    shutil.copy(tokenizer, folder / "tokenizer.json")
    small_corpus.assay("prepare", folder / "corpus.yaml", "--workers", "1")
    (folder / "mixture.yaml").write_text(
        "corpora: {tales: corpus}\nsequence_length: 64\nunique: none\n"
        "sources: {all: {from: tales, weight: 1}}\n"
    )
    small_corpus.assay(
        *("export", folder / "mixture.yaml", "--format", "megatron", "--output", tmp_path / "out")
    )
    (tmp_path / "again.yaml").write_text(
        "inputs: [{source: old, files: out/all.bin, decode: out/tokenizer.json, kind: book}]\n"
        "tokenizer: out/tokenizer.json\noutput: again\n"
    )
    small_corpus.assay("prepare", tmp_path / "again.yaml", "--workers", "1")
    question = "select distinct content_hash from documents where not heldout"
    texts = []
    for root, sql in (
        (folder / "corpus", question),
        (tmp_path / "again", "select distinct content_hash from documents"),
    ):
        with ask(root, sql, macros={}, timeout_seconds=60) as batches:
            texts.append({key for batch in batches for key in batch.column(0).to_pylist()})
    assert texts[0] == texts[1]
    assert len(texts[0]) > 70


def test_without_decode_nothing_is_read(tmp_path: Path, tokenizer: Path) -> None:
    path = written(tmp_path, tokenizer, "megatron", np.uint16)
    settings = CorpusSettings(
        inputs=(Input(source="old", files=str(path)),), tokenizer=str(tokenizer)
    )
    with pytest.raises(ConfigError, match="source 'old': old.bin holds token ids; name the token"):
        input_files(settings)


def test_the_tokenizer_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "corpus.yaml").write_text(
        "inputs: [{source: old, files: a.bin, decode: gone.json}]\ntokenizer: t.json\n"
    )
    with pytest.raises(ConfigError, match=r"source 'old': key `decode`: no such file .*gone.json"):
        load_corpus(tmp_path / "corpus.yaml", tokenizer_exists=False)
