"""Two engines behind one function: `tokenizers`, the reference, and gigatoken, the fast one.

Both read control tokens spelled out in a text as ordinary text, so that their ids can be equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Engine = Literal["gigatoken", "tokenizers"]
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


def _tokenizers(spec: dict[str, Any]) -> EncodeText:
    """The reference. Control tokens are declared special, and specials are read as text."""
    import tokenizers

    added = [t | {"special": True} if is_control(t) else t for t in spec.get("added_tokens") or ()]
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(spec | {"added_tokens": added}))
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


def _gigatoken(spec: dict[str, Any]) -> EncodeText:
    """The fast one, on the calling thread: the pipeline runs one process per core.

    It always recognizes added tokens, so the control tokens are taken out of its tokenizer.json.
    """
    import awkward
    import gigatoken

    added = [token for token in spec.get("added_tokens") or () if not is_control(token)]
    tokenizer = gigatoken.Tokenizer.from_json(json.dumps(spec | {"added_tokens": added}))

    def encode(texts: pa.Array) -> tuple[Ids, Offsets]:
        layout = tokenizer.encode_batch(_strings(texts), parallel=False).layout
        layout = layout.to_ListOffsetArray64(start_at_zero=True)
        return np.asarray(layout.content.data), np.asarray(layout.offsets.data)

    def _strings(texts: pa.Array) -> Any:
        """The Arrow buffers as an awkward array of strings, without a copy."""
        texts = texts.cast(pa.large_string())
        _, offsets, data = texts.buffers()
        starts = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        content = awkward.contents.NumpyArray(
            np.frombuffer(data or b"", np.uint8), parameters={"__array__": "char"}
        )
        return awkward.Array(
            awkward.contents.ListOffsetArray(
                awkward.index.Index64(starts), content, parameters={"__array__": "string"}
            )
        )

    return encode


ENGINES: Mapping[Engine, Callable[[dict[str, Any]], EncodeText]] = {
    "gigatoken": _gigatoken,
    "tokenizers": _tokenizers,
}
