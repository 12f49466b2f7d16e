"""Two engines behind one function: `tokenizers`, the reference, and fastokens, the fast one.

Both read control tokens spelled out in a text as ordinary text, so that their ids can be equal.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TOKENIZERS = 4  # of a corpus, kept loaded: 100 to 150 MB each
Engine = Literal["fastokens", "tokenizers"]
Ids = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]
# texts -> (ids of all texts in one row, where each text begins; one more offset than texts)
EncodeText = Callable[[pa.Array], tuple[Ids, Offsets]]

# Control tokens that their tokenizer does not declare `special` (DeepSeek's <｜User｜>, <think>;
# OLMo's |||IP_ADDRESS|||). Added runs of white space (GPT-NeoX) are ordinary vocabulary.
_CONTROL = re.compile(r"<.*>|\[.*\]|\|.*\||｜.*｜", re.DOTALL)


def is_control(token: Mapping[str, Any]) -> bool:
    """Is this entry of `added_tokens` a control token, never meant by a text that spells it?"""
    return bool(token["special"]) or is_control_name(token["content"])


def is_control_name(name: str) -> bool:
    return _CONTROL.fullmatch(name) is not None


# What `\p{...}` in a splitting rule may name: general categories. Scripts (`\p{Han}`) are read by
# fastokens 0.3.5 otherwise than by `tokenizers`, without a word: 58 of 135 texts came out wrong.
_PROPERTY = re.compile(r"\\[pP]\{\^?([^}]*)\}|\\[pP](\w)")
_CATEGORY = re.compile(r"[LMNPSZC]|L[ulmto&]|M[nce]|N[dlo]|P[cdseifo]|S[mcko]|Z[slp]|C[cfno]|Any")


def controls_special(spec: dict[str, Any]) -> str:
    """The tokenizer.json with every control token declared special."""
    added = [t | {"special": True} if is_control(t) else t for t in spec.get("added_tokens") or ()]
    return json.dumps(spec | {"added_tokens": added})


def _tokenizers(spec: dict[str, Any]) -> EncodeText:
    """The reference."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_str(controls_special(spec))
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(texts: pa.Array) -> tuple[Ids, Offsets]:
        encodings = tokenizer.encode_batch_fast(texts.to_pylist(), add_special_tokens=False)
        rows = [np.array(encoding.ids, np.uint32) for encoding in encodings]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return np.concatenate([np.zeros(0, np.uint32), *rows]), offsets

    return encode


def _fastokens(spec: dict[str, Any]) -> EncodeText:
    """The fast one, on the calling thread: the pipeline runs one process per core.

    Raises:
        ValueError: a splitting rule that it is known to read wrongly, or does not know.
    """
    import fastokens

    for rule in _rules(spec):
        for names in _PROPERTY.findall(rule):
            if not _CATEGORY.fullmatch("".join(names)):
                raise ValueError(f"splitting rule {rule!r} names a script; fastokens misreads it")
    tokenizer = fastokens.Tokenizer.from_json_str(controls_special(spec))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    @functools.cache
    def begin() -> None:
        """It makes a pool of a thread for each core it sees at the first batch: one, and not
        before, since a process that has threads cannot be forked."""
        with _one_core():
            tokenizer.encode_batch_flat(["a", "b"] * 64, split_special_tokens=True)

    def encode(texts: pa.Array) -> tuple[Ids, Offsets]:
        begin()
        ids, offsets = tokenizer.encode_batch_flat(texts.to_pylist(), split_special_tokens=True)
        return np.frombuffer(ids, "<u4"), np.frombuffer(offsets, "<i8")

    return encode


def _rules(node: Any) -> Iterator[str]:
    """Every regular expression in a tokenizer.json: `{"Regex": ...}` at any depth."""
    if isinstance(node, dict):
        if isinstance(node.get("Regex"), str):
            yield node["Regex"]
        for key, value in node.items():
            if key != "model":  # vocabularies are long and hold no rule
                yield from _rules(value)
    elif isinstance(node, list):
        for value in node:
            yield from _rules(value)


@contextmanager
def _one_core() -> Iterator[None]:
    """This thread sees one core inside the block; where the system cannot do that, all of them."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


ENGINES: Mapping[Engine, Callable[[dict[str, Any]], EncodeText]] = {
    "fastokens": _fastokens,
    "tokenizers": _tokenizers,
}


@functools.lru_cache(maxsize=TOKENIZERS)
def loaded(engine: Engine, tokenizer_json: bytes) -> EncodeText:
    """An engine, once a process: it takes a second and 100 to 150 MB.

    Raises:
        RuntimeError, ValueError: a rule, normalizer or model that it does not know.
    """
    return ENGINES[engine](json.loads(tokenizer_json))
