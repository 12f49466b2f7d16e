"""Ids beyond the vocabulary stop a plan, and say where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from mixture_corpus import TOKENIZER, VOCAB_SIZE, Doc, Tiny, write_corpus

from mixtures.plan import make_plan
from pipeline.corpus import CorpusError
from pipeline.files import write_json

DOCS = [Doc(f"a sentence with the number {n}") for n in range(30)]
DOCS[17] = Doc("a sentence of the café", source="qa")  # bytes + 1: é is 196 and 170


def _mixture(root: Path) -> Path:
    write_corpus(root / "web", Tiny(DOCS), shard_rows=10)
    path = root / "mixture.yaml"
    spec = {"corpora": {"web": "web"}, "sequence_length": 16, "sources": {"all": {"from": "web"}}}
    path.write_text(yaml.safe_dump(spec), "utf-8")
    return path


def test_source_shard_and_document_are_named(tmp_path: Path) -> None:
    """As of a tokenizer that was exchanged, or a shard put there by hand: lit-llama #306,
    torchtitan #1495."""
    path = _mixture(tmp_path)
    policy = {"hash": TOKENIZER, "dtype": "uint16", "bos_id": None, "eos_id": 0}
    place = tmp_path / "web/tokens" / TOKENIZER / "policy.json"
    write_json(place, policy | {"vocab_size": 196})
    message = (
        rf"part-00001\.arrow: row 7, document {Tiny(DOCS).id(17)} of source 'qa', holds token id "
        r"196, but the tokenizer has 196 tokens; tokenize again: delete this file and call "
        r"`assay prepare`"
    )
    with pytest.raises(ValueError, match=message):
        make_plan(path, 320)
    write_json(place, policy | {"vocab_size": 197})
    assert make_plan(path, 320).vocab_size == 197


def test_a_damaged_shard_is_told_by_its_hash(tmp_path: Path) -> None:
    """A flipped bit makes another id, within the vocabulary or not."""
    path = _mixture(tmp_path)
    shard = tmp_path / "web/tokens" / TOKENIZER / "part-00001.arrow"
    data = bytearray(shard.read_bytes())
    at = data.index(bytes([196, 0, 170, 0]))  # uint16, little-endian
    data[at + 1] = 255
    assert VOCAB_SIZE < 196 + 255 * 256
    shard.write_bytes(data)
    with pytest.raises(CorpusError, match=r"part-00001\.arrow"):
        make_plan(path, 320)
