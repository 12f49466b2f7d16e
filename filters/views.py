"""What the language model sees of each text: at most MODEL_BYTES of its prose, in one line."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from filters.letters import ODD_WIDTH, Counts, Flags, Letters
from filters.plain import plain_heads
from filters.prose import prose, without_markup
from filters.text import CLASSES
from kernels.arrow import string_buffers

# Of the prose, 800 letters or 270 Han; Han cost the model thrice. Of 58,000 real documents 32 got
# another label than from 1,200 bytes, nearly all of them mojibake.
MODEL_BYTES = 800
HEAD_CHARS = 2_000  # of the document in which that prose is looked for, at first
HEAD_CHARS_OF_CODE = 40_000  # ... and where the first head is nearly all code and markup
MIN_PROSE_CHARS = 200
MAX_CHARS = 2**31  # more than any head has

_ODD_WIDTH = re.compile(f"[{ODD_WIDTH}]")


def views(texts: pa.Array, n: Letters) -> pa.Array:
    """One string for each text, whose letters are `n`."""
    found, plain = _plain(texts, HEAD_CHARS, markup_is_out=False)
    others = np.flatnonzero(~plain)
    heads = pc.utf8_slice_codeunits(texts.take(pa.array(others)), 0, HEAD_CHARS)
    stripped = pa.array(map(without_markup, heads.to_pylist()), pa.string())
    by_patterns, plain = _plain(stripped, MAX_CHARS, markup_is_out=True)
    is_cut = np.asarray(pc.utf8_length(heads)) == HEAD_CHARS
    plain &= ~is_cut | (np.asarray(pc.utf8_length(by_patterns)) >= MIN_PROSE_CHARS)
    found = _replaced(found, others, by_patterns)
    others = others[~plain]
    found = _replaced(found, others, views_by_rules(texts.take(pa.array(others))))
    odd = np.flatnonzero((n.odd_width > 0) | (2 * n.upper > n.all))
    return _replaced(found, odd, _folded(found.take(pa.array(odd)), n.of(odd)))


def _plain(texts: pa.Array, head_chars: int, *, markup_is_out: bool) -> tuple[pa.Array, Flags]:
    data, offsets = string_buffers(texts)
    limits = head_chars, MODEL_BYTES, MIN_PROSE_CHARS
    heads, ends, plain = plain_heads(data, offsets, CLASSES, *limits, markup_is_out)
    found = pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(heads))
    return found, plain


def views_by_rules(texts: pa.Array) -> list[str]:
    """The same by the patterns of filters/prose.py, before letters are folded."""
    heads = pc.utf8_slice_codeunits(texts, 0, HEAD_CHARS).to_pylist()
    found = [prose(head) for head in heads]
    for i, (head, view) in enumerate(zip(heads, found, strict=True)):
        if len(view) < MIN_PROSE_CHARS and len(head) == HEAD_CHARS:
            view = prose(texts[i].as_py()[:HEAD_CHARS_OF_CODE])
        if not any(char.isalpha() for char in view):
            view = " ".join(head.split())
        if 4 * len(view) > MODEL_BYTES:
            view = view.encode()[:MODEL_BYTES].decode(errors="ignore")
        found[i] = view
    return found


def _folded(views: pa.Array, n: Letters) -> list[str]:
    """Views with letters of the usual width, those of mostly capitals in lower case."""
    found: list[str] = views.to_pylist()
    for i in np.flatnonzero(n.odd_width).tolist():
        if _ODD_WIDTH.search(found[i]):
            found[i] = unicodedata.normalize("NFKC", found[i])
    for i in np.flatnonzero(2 * n.upper > n.all).tolist():
        found[i] = found[i].lower()  # "PROJECT TAGGING CRITERIA" is Korean to the model
    return found


def _replaced(strings: pa.Array, rows: Counts, others: list[str] | pa.Array) -> pa.Array:
    """`strings` with `others` in their `rows`."""
    places = np.arange(len(strings))
    places[rows] = len(strings) + np.arange(len(rows))
    return pa.concat_arrays([strings, pa.array(others, pa.string())]).take(pa.array(places))
