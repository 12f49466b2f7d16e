"""Long texts in pieces have the ids of whole ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import small_corpus
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import long_texts
from pipeline.tokenizer_commands import train
from pipeline.tokenizer_engines import ENGINES, Engine
from pipeline.tokenizer_files import SPLITS

TEXTS = [small_corpus.english(n) for n in range(40)] + [small_corpus.chinese(n) for n in range(40)]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("long") / "tokenizer.json"
    train(TEXTS, 500, path)
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def _with_rule(spec: dict[str, Any], rule: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(spec))
    found["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": rule}
    return found


def _same(text: str, engine: long_texts.EncodeText, size: int) -> int:
    pieces = list(long_texts.pieces(text, engine, size))
    assert "".join(piece for piece, _ in pieces) == text
    whole, _ = engine(pa.array([text]))
    apart = [engine(pa.array([piece]))[0][added:] for piece, added in pieces]
    assert np.array_equal(whole, np.concatenate(apart))
    return len(pieces)


LONG = {
    "real": "\n\n".join(TEXTS),
    "one line": " ".join(TEXTS).replace("\n", " "),
    "no spaces": "".join(TEXTS).replace(" ", "").replace("\n", ""),
    "equal": "a" * 50_000,
    "spaces": "x" + " " * 50_000 + "y",
    "marks": "。" * 20_000 + "a,b;c" * 5_000,
    "quotes": "don't \"'s\" it's.\n" * 3_000,
}


@pytest.mark.parametrize("rule", sorted(SPLITS))
@pytest.mark.parametrize("engine", ["tokenizers", "fastokens"])
@pytest.mark.parametrize("text", sorted(LONG))
def test_same_ids(spec: dict[str, Any], rule: str, engine: Engine, text: str) -> None:
    count = _same(LONG[text], ENGINES[engine](_with_rule(spec, SPLITS[rule])), 5_000)
    assert (count > 1) == (text not in ("equal", "spaces"))


@settings(max_examples=40)
@given(st.text(st.sampled_from("aé好 \n\r'.。,!s1\u3000\u0301"), max_size=300))
def test_same_ids_of_generated_text(spec: dict[str, Any], text: str) -> None:
    _same(text, ENGINES["tokenizers"](spec), 10)


def test_a_batch_with_a_long_text(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_texts, "LONG_BYTES", 10_000)
    monkeypatch.setattr(long_texts, "PIECE_CHARS", 3_000)
    engine = ENGINES["fastokens"](spec)
    texts = pa.array(["", "short", LONG["real"], "好"])
    ids, offsets = long_texts.encode(texts, engine)
    whole_ids, whole_offsets = engine(texts)
    assert np.array_equal(ids, whole_ids)
    assert np.array_equal(offsets, whole_offsets)


def test_a_tokenizer_that_begins_each_text_with_a_space(spec: dict[str, Any]) -> None:
    spec = json.loads(json.dumps(spec))
    spec["normalizer"] = {"type": "Prepend", "prepend": " "}
    engine = ENGINES["tokenizers"](spec)
    ids, _ = engine(pa.array(["", "a", " a"]))
    assert len(ids) >= 3
    for text in ("real", "no spaces", "one line"):
        assert _same(LONG[text][:20_000], engine, 2_000) > 3


def test_an_id_beyond_the_vocabulary_is_never_wrapped(tmp_path: Path) -> None:
    from dataclasses import replace

    from pipeline import tokenizer as tok
    from pipeline.settings import Tokenizer

    train(TEXTS, 400, tmp_path / "tokenizer.json")
    encoder = replace(tok.load(Tokenizer(file=str(tmp_path / "tokenizer.json"))), vocab_size=300)
    with pytest.raises(ValueError, match=r"gave id 3\d\d for text 1 of a batch, beyond its 300"):
        encoder.encode(pa.array(["", TEXTS[0]]))
