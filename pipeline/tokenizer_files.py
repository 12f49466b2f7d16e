"""Tokenizers as they are published, as the tokenizer.json that all else reads.

tiktoken's ranks become a byte-level BPE: of a token every way to make it of two others is a merge,
in the order of ranks, and a piece that is a token is one. tiktoken merges the leftmost of equal
ranks, `tokenizers` the pair that stands first: they could differ where one token is made of
overlapping pairs. docs/tokens.md says how often they do, which is never.

A SentencePiece model becomes its normalizer, a split at spaces where no piece goes across one, and
a Unigram or BPE. Control pieces are never made of text. Where two ways to cut a text are equally
likely (a run of spaces; a Unigram's sums, of 32 bits in sentencepiece) `tokenizers` may take the
other one: in 1 of 70 documents with the BPE of Mistral, 1 of 270 with a Unigram.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.config import ConfigError, suggestion
from pipeline.tokenizer_engines import is_control_name

# Splitting rules that fast engines know, and the control tokens that are published with them
# (tiktoken_ext/openai_public.py; Qwen's and Llama 3's tokenization.py).
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SPLITS: Mapping[str, str] = {
    "cl100k": rf"{_SHORT}|{_WORDS}|\p{{N}}{{1,3}}|{_REST}",
    "qwen": rf"{_SHORT}|{_WORDS}|\p{{N}}|{_REST}",
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORT}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORT}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
# By the number of ranks before them, which tells whose they are.
CONTROLS: Mapping[int, Mapping[str, int]] = {
    50_256: {"<|endoftext|>": 50_256},
    100_256: {"<|endoftext|>": 100_257, "<|endofprompt|>": 100_276},
    128_000: {"<|begin_of_text|>": 128_000, "<|end_of_text|>": 128_001},
    151_643: {"<|endoftext|>": 151_643, "<|im_start|>": 151_644, "<|im_end|>": 151_645},
    199_998: {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018},
}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # types of a piece
UNIGRAM, BPE = 1, 2  # types of a model


def as_json(
    content: bytes, place: str, split: str | None = None, special: Mapping[str, int] | None = None
) -> bytes:
    """A tokenizer.json as it is; ranks or a SentencePiece model converted.

    Args:
        split: of ranks, a name of SPLITS or a regular expression.
        special: of ranks, control tokens and their ids; default: those of CONTROLS.

    Raises:
        ConfigError: it is none of the three, or of a kind that is not read; names `place`.
    """
    if content.lstrip()[:1] in (b"{", b"["):
        return content
    ranks = _ranks(content)
    spec = _of_ranks(ranks, place, split, special) if ranks else _of_pieces(content, place)
    return json.dumps(spec, ensure_ascii=False).encode()


# --- tiktoken -------------------------------------------------------------------------------------


def _ranks(content: bytes) -> dict[bytes, int]:
    """Token -> rank; empty: it is no such file."""
    found = {}
    for line in content.splitlines():
        token, _, rank = line.partition(b" ")
        try:
            found[base64.b64decode(token, validate=True)] = int(rank)
        except (binascii.Error, ValueError):
            return {}
    return found


def _of_ranks(
    ranks: Mapping[bytes, int], place: str, split: str | None, special: Mapping[str, int] | None
) -> dict[str, Any]:
    if split is None:
        raise ConfigError(
            f"key `tokenizer.split`: {place} holds ranks, which do not say how text is split; name "
            f"a rule, {', '.join(SPLITS)}, or give the regular expression itself"
        )
    if split not in SPLITS and split.isidentifier():
        raise ConfigError(
            f"key `tokenizer.split`: no rule {split!r}; {suggestion(split, SPLITS)}, or give a "
            "regular expression"
        )
    if missing := [byte for byte in range(256) if bytes([byte]) not in ranks]:
        raise ConfigError(f"{place}: no rank for the byte {missing[0]}, so not all text has tokens")
    letters = byte_letters()
    name = {token: "".join(map(letters.__getitem__, token)) for token in ranks}
    merges = [
        [name[token[:at]], name[token[at:]]]
        for token in sorted(ranks, key=ranks.__getitem__)
        for at in sorted(
            (at for at in range(1, len(token)) if token[:at] in ranks and token[at:] in ranks),
            key=lambda at, token=token: ranks[token[:at]],  # type: ignore[misc]
        )
    ]
    controls = CONTROLS.get(len(ranks), {}) if special is None else special
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(i, token) for token, i in sorted(controls.items(), key=_second)],
        "normalizer": None,
        "pre_tokenizer": _sequence(
            "pretokenizers",
            {
                "type": "Split",
                "pattern": {"Regex": SPLITS.get(split, split)},
                "behavior": "Isolated",
                "invert": False,
            },
            _byte_level(),
        ),
        "post_processor": None,
        "decoder": _byte_level(),
        "model": _bpe({name[token]: rank for token, rank in ranks.items()}, merges)
        | {"ignore_merges": True},
    }


def byte_letters() -> list[str]:
    """The letter that stands for each byte in a byte-level vocabulary (GPT-2's encoder.py)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    letter = {byte: chr(byte) for byte in plain} | {b: chr(256 + i) for i, b in enumerate(rest)}
    return [letter[byte] for byte in range(256)]


# --- SentencePiece --------------------------------------------------------------------------------


@dataclass
class _Model:
    """What of sentencepiece_model.proto decides the ids."""

    pieces: list[tuple[str, float, int]] = field(default_factory=list)  # piece, score, type
    trainer: dict[int, Any] = field(default_factory=dict)
    normalizer: dict[int, Any] = field(default_factory=dict)

    def of(self, *kinds: int) -> list[tuple[int, str]]:
        return [(i, piece) for i, (piece, _, kind) in enumerate(self.pieces) if kind in kinds]


def _of_pieces(content: bytes, place: str) -> dict[str, Any]:
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
        "added_tokens": [_added(i, piece) for i, piece in model.of(UNKNOWN, CONTROL, USER_DEFINED)],
        "normalizer": _sequence("normalizers", *_normalizers(model.normalizer, prefixed)),
        "pre_tokenizer": None if inner else at_spaces,
        "post_processor": None,
        "decoder": _sequence(
            "decoders",
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            *([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefixed else []),
        ),
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
    return _bpe(vocabulary, [[piece[:at], piece[at:]] for *_, at, piece in sorted(merges)]) | {
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


# --- parts of a tokenizer.json --------------------------------------------------------------------


def _sequence(key: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", key: list(parts)}


def _byte_level() -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }


def _added(number: int, content: str) -> dict[str, Any]:
    return {
        "id": number,
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def _bpe(vocabulary: Mapping[str, int], merges: list[list[str]]) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": dict(vocabulary),
        "merges": merges,
    }


def _second(pair: tuple[str, int]) -> int:
    return pair[1]
