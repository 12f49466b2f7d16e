"""Ranks of tiktoken and SentencePiece models as tokenizer.json; ids worked out by hand."""

from __future__ import annotations

import base64
import importlib.util
import itertools
import json
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline import tokenizer as tok
from pipeline.config import ConfigError
from pipeline.settings import Tokenizer
from pipeline.tokenizer_engines import ENGINES
from pipeline.tokenizer_files import SPLITS, as_json

WORDS = [b"he", b"ll", b"hell", b"lo", " 好".encode(), "好".encode()]


def ranks(tokens: list[bytes]) -> bytes:
    rows = enumerate([*(bytes([byte]) for byte in range(256)), *tokens])
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in rows)


def _field(number: int, value: int | bytes | float) -> bytes:
    if isinstance(value, float):
        return bytes([number << 3 | 5]) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def pieces(rows: list[tuple[str, float, int]], kind: int, **normalizer: int) -> bytes:
    """A ModelProto; kind 1: unigram, 2: BPE."""
    coded = (_field(1, p.encode()) + _field(2, score) + _field(3, t) for p, score, t in rows)
    spec = {"prefix": 1, "collapse": 0} | normalizer
    return (
        b"".join(_field(1, piece) for piece in coded)
        + _field(2, _field(3, kind) + _field(35, 0))
        + _field(3, _field(3, spec["prefix"]) + _field(4, spec["collapse"]))
    )


SPECIAL = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
UNIGRAM = [
    *SPECIAL,
    ("▁", -3.0, 1),
    ("a", -4.0, 1),
    ("▁ab", -5.0, 1),
    ("b", -4.5, 1),
    *((mark, -9.0, 1) for mark in "</s>"),
]
MERGED = [*SPECIAL, *((c, -1e4, 1) for c in "▁ab"), ("ab", -1.0, 1), ("▁a", -2.0, 1)]


def encoded(content: bytes, texts: list[str], folder: Path, **settings: object) -> list[list[int]]:
    file = folder / "tokenizer.file"
    file.write_bytes(content)
    encoder = tok.load(Tokenizer(file=str(file), **settings))  # type: ignore[arg-type]
    ids, offsets, _ = encoder.encode(pa.array(texts))
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def converted(content: bytes, texts: list[str]) -> list[list[int]]:
    """Ids of the tokenizer.json alone, which other libraries get."""
    ids, offsets = ENGINES["tokenizers"](json.loads(as_json(content, "file")))(pa.array(texts))
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def test_ranks(tmp_path: Path) -> None:
    found = encoded(
        ranks(WORDS),
        ["hello", " 好", "x 好", "<|end|>"],
        tmp_path,
        split="cl100k",
        special={"<|end|>": 300},
        eos="<|end|>",
    )
    # hello: he+ll -> hell (258), o. "ll" has a lower rank than "lo"
    assert found[:3] == [[258, 111, 300], [260, 300], [120, 260, 300]]
    assert found[3] == [*b"<|end|>", 300]


def test_the_hash_is_that_of_the_json_it_becomes(tmp_path: Path) -> None:
    (tmp_path / "own.tiktoken").write_bytes(ranks(WORDS))
    policy = {"split": "qwen", "special": {"<|end|>": 300}, "eos": "<|end|>"}
    encoder = tok.load(Tokenizer(file=str(tmp_path / "own.tiktoken"), **policy))
    assert (encoder.vocab_size, encoder.eos_id) == (301, 300)
    tok.save(encoder, tmp_path / "kept")
    copy = tok.load(Tokenizer(file=str(tmp_path / "kept/tokenizer.json"), **policy))
    assert copy.hash == encoder.hash
    assert tok.choose_engine(tmp_path / "kept/tokenizer.json", ["hello 12 好"]) == "fastokens"


MODELS = {
    # ▁ab: -5, better than ▁ a b: -11.5. A control piece is never made of text
    "unigram": (
        pieces(UNIGRAM, 1),
        {
            "ab": [5],
            "a b": [3, 4, 3, 6],
            "b": [3, 6],
            "é": [3, 0],
            "</s>": [3, 7, 8, 9, 10],
            "": [],
        },
    ),
    "collapsed": (pieces(UNIGRAM, 1, collapse=1), {"  a   ab ": [3, 4, 5]}),
    "no prefix": (pieces(UNIGRAM, 1, prefix=0), {"ab  ab": [4, 6, 3, 5]}),
    # ab first, then ▁ cannot join
    "merged": (pieces(MERGED, 2), {"ab": [3, 6], "aa": [7, 4], "ba": [3, 5, 4]}),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_sentencepiece(name: str, tmp_path: Path) -> None:
    content, wanted = MODELS[name]
    assert converted(content, list(wanted)) == list(wanted.values())
    pytest.importorskip("sentencepiece")
    assert encoded(content, list(wanted), tmp_path, eos=None) == list(wanted.values())


TIED = [
    *SPECIAL,
    *((c, -1e4, 1) for c in "▁ab"),
    ("aa", -1.0, 1),
    ("aaa", -2.0, 1),
    ("<m>", 0.0, 4),
]


def test_models_are_encoded_by_sentencepiece(tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    texts = ["a" * count + end for count in range(1, 40) for end in ("", "b", " a")] + ["<m>a"]
    content = pieces(TIED, 2, prefix=0)
    reference = sentencepiece.SentencePieceProcessor(model_proto=content)
    found = encoded(content, texts, tmp_path, eos=None)
    assert found[:-1] == reference.encode(texts[:-1])
    # a piece defined by hand that names a control token is text, where the library takes the piece
    assert (found[-1], reference.encode("<m>a")) == ([0, 4], [8, 4])


def test_sentencepiece_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'assay\[sentencepiece\]'"):
        encoded(pieces(UNIGRAM, 1), ["a"], tmp_path)


@pytest.mark.parametrize(
    ("content", "split", "message"),
    [
        (b"not a tokenizer", None, "no tokenizer.json .* no file of tiktoken's ranks, and no Sent"),
        (ranks(WORDS), None, "do not say how text is split; name a rule, cl100k, qwen"),
        (ranks(WORDS), "qwem", "no rule 'qwem'; did you mean 'qwen'"),
        (ranks(WORDS).split(b"\n", 1)[1], "qwen", "no rank for the byte 0"),
        (pieces([*UNIGRAM, ("▁▁x", 0.0, 4)], 1), None, "pieces defined by hand, as .'▁▁x'"),
        (pieces(UNIGRAM, 3), None, "of type char or word are not read"),
    ],
)
def test_refusals(content: bytes, split: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        as_json(content, "file", split)


def test_no_rule_names_a_script() -> None:
    spec = json.loads(as_json(ranks(WORDS), "file", "o200k"))
    assert spec["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] == SPLITS["o200k"]
    assert not any("Han" in rule for rule in SPLITS.values())
