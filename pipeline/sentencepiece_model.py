"""A SentencePiece model as a tokenizer.json.

It becomes its normalizer, a split at spaces where no piece goes across one, and
a Unigram or BPE. Control pieces are never made of text. This is what decodes, and what other
libraries get; ids are those of the model itself, which stands in it (sentencepiece_engine.py):
`tokenizers` has others in 1 of 70 documents with the BPE of Mistral, 1 of 270 with a Unigram.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.config import ConfigError
from pipeline.sentencepiece_engine import KEY
from pipeline.tokenizer_engines import is_control_name
from pipeline.tokenizer_parts import added, bpe, sequence

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # types of a piece
UNIGRAM, BPE = 1, 2  # types of a model


@dataclass
class _Model:
    """What of sentencepiece_model.proto decides the ids."""

    pieces: list[tuple[str, float, int]] = field(default_factory=list)  # piece, score, type
    trainer: dict[int, Any] = field(default_factory=dict)
    normalizer: dict[int, Any] = field(default_factory=dict)

    def of(self, *kinds: int) -> list[tuple[int, str]]:
        return [(i, piece) for i, (piece, _, kind) in enumerate(self.pieces) if kind in kinds]


def of_pieces(content: bytes, place: str) -> dict[str, Any]:
    try:
        model = _parsed(content)
    except (ValueError, IndexError, struct.error):
        model = _Model()
    if not model.pieces:
        raise ConfigError(
            f"key `tokenizer`: {place} is no tokenizer.json of the `tokenizers` library, no file "
            "of tiktoken's ranks, and no SentencePiece model"
        )
    kind = model.trainer.get(3, UNIGRAM)
    own = [piece for _, piece in model.of(USER_DEFINED) if not is_control_name(piece)]
    unread = {
        # `tokenizers` 0.23 panics on added tokens of normalized text
        f"pieces defined by hand, as {own[:1]}": own,
        "of type char or word": kind not in (UNIGRAM, BPE),
        "treat_whitespace_as_suffix": model.trainer.get(24, 0),
        "escape_whitespaces: false": not model.normalizer.get(5, 1),
        "unused pieces": model.of(UNUSED),
    }
    for what, there in unread.items():
        if there:
            raise ConfigError(
                f"key `tokenizer`: {place}: SentencePiece models with {what} are not read; convert "
                "it to a tokenizer.json by the library that it came with"
            )
    inner = any("▁" in piece.lstrip("▁") for _, piece in model.of(NORMAL))
    at_spaces = {
        "type": "Split",
        "pattern": {"Regex": "▁+[^▁]*"},
        "behavior": "Isolated",
        "invert": False,
    }
    prefixed = bool(model.normalizer.get(3, 1))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(i, piece) for i, piece in model.of(UNKNOWN, CONTROL, USER_DEFINED)],
        "normalizer": sequence("normalizers", *_normalizers(model.normalizer, prefixed)),
        "pre_tokenizer": None if inner else at_spaces,
        "post_processor": None,
        "decoder": sequence(
            "decoders",
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            *([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefixed else []),
        )
        | {KEY: base64.b64encode(_without_own(content)).decode()},
        "model": _unigram(model) if kind == UNIGRAM else _merged(model),
    }


def _normalizers(spec: Mapping[int, Any], prefixed: bool) -> Iterator[dict[str, Any]]:
    if charsmap := spec.get(2):
        encoded = base64.b64encode(charsmap).decode()
        yield {"type": "Precompiled", "precompiled_charsmap": encoded}
    if spec.get(4, 1):  # remove_extra_whitespaces
        yield {"type": "Replace", "pattern": {"Regex": r"\A +| +\z"}, "content": ""}
        yield {"type": "Replace", "pattern": {"Regex": " +"}, "content": " "}
    if prefixed:
        yield {"type": "Prepend", "prepend": "▁"}
    yield {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}


def _unigram(model: _Model) -> dict[str, Any]:
    """Pieces that no text makes are so unlikely that any other way through it is better."""
    least = min(score for _, score, kind in model.pieces if kind == NORMAL)
    (unknown,) = model.of(UNKNOWN)
    return {
        "type": "Unigram",
        "unk_id": unknown[0],
        "vocab": [
            [piece, score if kind == NORMAL else least - 10_000]
            for piece, score, kind in model.pieces
        ],
        "byte_fallback": bool(model.trainer.get(35, 0)),
    }


def _merged(model: _Model) -> dict[str, Any]:
    scores = {piece: score for piece, score, kind in model.pieces if kind == NORMAL}
    vocabulary = {piece: i for i, (piece, _, _) in enumerate(model.pieces)}
    merges = [  # of one piece that with the earlier left one first: in a run of spaces the longest
        (-scores[piece], vocabulary[piece[:at]], at, piece)
        for piece in scores
        for at in range(1, len(piece))
        if piece[:at] in scores and piece[at:] in scores
    ]
    (unknown,) = model.of(UNKNOWN)
    return bpe(vocabulary, [[piece[:at], piece[at:]] for *_, at, piece in sorted(merges)]) | {
        "unk_token": unknown[1],
        "fuse_unk": True,
        "byte_fallback": bool(model.trainer.get(35, 0)),
    }


def _parsed(content: bytes) -> _Model:
    """Read a ModelProto: pieces (1), trainer_spec (2), normalizer_spec (3)."""
    model = _Model()
    for number, value in _fields(content):
        if number == 1:
            piece = dict(_fields(value))
            score = struct.unpack("<f", piece.get(2, b"\0\0\0\0"))[0]
            model.pieces.append((piece[1].decode(), score, piece.get(3, NORMAL)))
        elif number == 2:
            model.trainer = dict(_fields(value))
        elif number == 3:
            model.normalizer = dict(_fields(value))
    return model


def _without_own(content: bytes) -> bytes:
    """The model with pieces defined by hand as control pieces, which no text makes. The type is
    written last, a byte (sentencepiece_model.proto: field 3)."""
    own, control = bytes([3 << 3, USER_DEFINED]), bytes([3 << 3, CONTROL])
    for number, piece in _fields(content):
        if number == 1 and piece.endswith(own):
            content = content.replace(piece, piece.removesuffix(own) + control)
    return content


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field of a protobuf message: int, or bytes of a string, message or
    float (protobuf.dev/programming-guides/encoding).

    Raises:
        ValueError, IndexError: it is none.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"no wire type {wire}")
        length, at = _varint(message, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
        if at + length > len(message):
            raise ValueError(f"a field of {length} bytes ends beyond its message")
        yield key >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
