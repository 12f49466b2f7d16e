"""Which copy of a text stays: the documents of a mixture walked in `prefer` order.

Copies of one content (or one address) collapse first; then a document stays unless one that stays
forms a verified pair with it (design, rule 2). So what survives depends on the selection, not on
how the corpus looked as a whole, and the end of a chain a~b~c is not dropped for b's sake.
Of what is then left, `contained` drops what a longer document holds, whatever `prefer` says.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline import schema
from pipeline.unique import near_unique, outermost

# What two documents have in common that are copies of each other, as a column of `documents`; null
# is equal to nothing. `near` is what is left of `exact` after the walk over pairs; of `near`,
# `contained` leaves what no longer document holds, `semantic` what a walk over embeddings does.
LEVELS = {
    "url": "url_hash",
    "exact": "content_hash",
    "folded": "coalesce(folded_hash, content_hash)",
    "near": "content_hash",
    "semantic": "content_hash",
    "contained": "content_hash",
}

_DIRECTION = re.compile(r"\s+(asc|desc)\s*$", re.IGNORECASE)


def split_direction(expression: str) -> tuple[str, str | None]:
    """A `prefer` entry as expression and direction: 'num_chars desc' -> ('num_chars', 'desc')."""
    found = _DIRECTION.search(expression)
    return (expression[: found.start()], found[1].lower()) if found else (expression, None)


def preferred_order(rows: pa.Table, prefer: tuple[str, ...]) -> np.ndarray:
    """Row numbers, the most preferred first; NULL comes last, ties go by content hash, then id.

    Without a direction, numbers and text ascend as in SQL, and true comes before false:
    `corpus = 'books'` prefers books.
    """
    keys = []
    for at, expression in enumerate(prefer):
        name, direction = f"prefer_{at}", split_direction(expression)[1]
        if pa.types.is_boolean(rows.schema.field(name).type):
            direction = direction or "desc"
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, name, rows[name].cast(pa.int8()))
        keys.append((name, "descending" if direction == "desc" else "ascending"))
    keys += [("content_hash", "ascending"), ("id", "ascending")]
    return np.asarray(pc.sort_indices(rows, sort_keys=keys)).astype(np.int64)


def first_of_each(keys: pa.ChunkedArray, order: np.ndarray) -> np.ndarray:
    """Mask of the rows that come first, in `order`, among those of equal key; null equals none."""
    codes = np.asarray(keys.combine_chunks().dictionary_encode().indices.fill_null(-1))
    walked = codes[order]
    _, first = np.unique(walked, return_index=True)
    keep = np.zeros(len(order), dtype=bool)
    keep[order[first]] = True
    return keep | (codes < 0)


def without_near(
    root: Path, contents: pa.ChunkedArray, first: np.ndarray, order: np.ndarray
) -> np.ndarray:
    """Mask of the rows among `first`, one of each content, that no near duplicate replaces."""
    return _staying(near_unique, root, contents, first, order)


def without_contained(
    root: Path, contents: pa.ChunkedArray, near: np.ndarray, order: np.ndarray
) -> np.ndarray:
    """Mask of the rows among `near`, what near duplicates left, that no longer one holds."""
    return _staying(outermost, root, contents, near, order)


def _staying(
    who: Callable[[Path, pa.Array], np.ndarray],
    root: Path,
    contents: pa.ChunkedArray,
    among: np.ndarray,
    order: np.ndarray,
) -> np.ndarray:
    walk = order[among[order]]
    keep = np.zeros(len(among), dtype=bool)
    keep[walk[who(root, hashes_of(contents.take(walk)))]] = True
    return keep


def hashes_of(digits: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column of hex digits, none of them null, as schema.HASH."""
    values = digits.combine_chunks() if isinstance(digits, pa.ChunkedArray) else digits
    values = values.cast(pa.large_string())
    _, offsets, data = values.buffers()
    begin, end = np.frombuffer(offsets, np.int64)[[values.offset, values.offset + len(values)]]
    hashes = binascii.unhexlify(memoryview(data or b"")[begin:end])
    return pa.Array.from_buffers(schema.HASH, len(values), [None, pa.py_buffer(hashes)])
