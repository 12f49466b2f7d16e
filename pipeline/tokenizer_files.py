"""Tokenizers as they are published, as the tokenizer.json that all else reads.

tiktoken's ranks become a byte-level BPE: of a token every way to make it of two others is a merge,
in the order of ranks, and a piece that is a token is one. tiktoken merges the leftmost of equal
ranks, `tokenizers` the pair that stands first: they could differ where one token is made of
overlapping pairs. docs/tokens.md says how often they do, which is never.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from pipeline.config import ConfigError, suggestion
from pipeline.sentencepiece_model import of_pieces
from pipeline.tokenizer_parts import added, bpe, byte_level, sequence

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
    spec = _of_ranks(ranks, place, split, special) if ranks else of_pieces(content, place)
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
        "added_tokens": [added(i, token) for token, i in sorted(controls.items(), key=_second)],
        "normalizer": None,
        "pre_tokenizer": sequence(
            "pretokenizers",
            {
                "type": "Split",
                "pattern": {"Regex": SPLITS.get(split, split)},
                "behavior": "Isolated",
                "invert": False,
            },
            byte_level(),
        ),
        "post_processor": None,
        "decoder": byte_level(),
        "model": bpe({name[token]: rank for token, rank in ranks.items()}, merges)
        | {"ignore_merges": True},
    }


def byte_letters() -> list[str]:
    """The letter that stands for each byte in a byte-level vocabulary (GPT-2's encoder.py)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    letter = {byte: chr(byte) for byte in plain} | {b: chr(256 + i) for i, b in enumerate(rest)}
    return [letter[byte] for byte in range(256)]


def _second(pair: tuple[str, int]) -> int:
    return pair[1]
