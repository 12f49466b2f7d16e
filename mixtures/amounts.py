"""Amounts of tokens as people write them; imports nothing heavy."""

from __future__ import annotations

import re

from pipeline.config import ConfigError

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMbBtT]?)")
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000, "t": 1_000_000_000_000}


def parse_amount(text: str) -> int:
    """Tokens: 500000, 500k, 2M, 1.5B, 1T.

    Raises:
        ConfigError: not an amount.
    """
    found = _AMOUNT.fullmatch(text.strip().replace(",", "").replace("_", ""))
    amount = round(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if amount < 1:
        raise ConfigError(f"not an amount of tokens: {text!r}; write 500000, 500k, 2M or 1.5B")
    return amount
