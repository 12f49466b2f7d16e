"""What a measured column is: its type, and the words that a reader of its numbers needs."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

# All that a signal may count.
UNITS = (
    *("characters", "letters", "words", "lines", "sentences", "paragraphs"),  # of filters/text.py
    "text",  # the document: one value for all of it
    "bytes",  # of UTF-8
    "runs",  # of one character that stands several times in a row
    "line feeds",
    "phrases",  # entries of a list, wherever they stand
)
_SINGULARS = tuple(unit.removesuffix("s") for unit in UNITS)


@dataclass(frozen=True)
class Signal:
    """One column. `unit` names what is counted, as one of UNITS, `A of B` (those A that stand in
    some B) or `A per B`; `source` the paper or project that it follows.
    """

    type: pa.DataType
    unit: str
    formula: str
    source: str


def unknown_units(unit: str) -> list[str]:
    """The parts of `Signal.unit` that are not in UNITS."""
    parts = re.split(" of | per ", unit)
    return [part for part in parts if part not in (*UNITS, *_SINGULARS)]
