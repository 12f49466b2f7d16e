"""What a measured column is: its type, and the words that a reader of its numbers needs."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Signal:
    """One column. `unit` names what is counted (units of filters/text.py); `source` the paper or
    project that it follows.
    """

    type: pa.DataType
    unit: str
    formula: str
    source: str
