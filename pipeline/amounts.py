"""Amounts as people write them, of tokens, documents and bytes; imports nothing heavy.

`Amount` and `NumBytes` are the types of settings: each takes a plain number too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator

from pipeline.config import ConfigError

# Thousands may be grouped; `1,5GB` is no 15: who writes a comma there means 1.5.
_AMOUNT = re.compile(r"((?:[0-9]{1,3}(?:[,_][0-9]{3})+|[0-9]+)(?:\.[0-9]+)?)\s*([A-Za-z]*)")
_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
# `k` and `M` alone are thousands and millions here too; `B` is left out: a byte, or a billion?
_BYTES = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}


def counted(number: int, noun: str, plural: str = "") -> str:
    """1 source, 1,200 sources."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def parse_amount(text: str) -> int:
    """Of tokens or documents: 500000, 500k, 2M, 1.5B, 1T.

    Raises:
        ConfigError: not an amount.
    """
    return _parsed(text, _COUNTS, "an amount", "500000, 500k, 2M or 1.5B")


def parse_bytes(text: str) -> int:
    """A size: 32000000, 32MB, 32MiB, 1.5GB.

    Raises:
        ConfigError: not a size.
    """
    return _parsed(text, _BYTES, "a size", "32000000, 500kB, 32MB, 1.5GB, or in KiB, MiB, GiB")


def _parsed(text: str, units: Mapping[str, int], what: str, forms: str) -> int:
    found = _AMOUNT.fullmatch(text.strip())
    unit = units.get(found[2].lower()) if found else None
    amount = round(Decimal(found[1].replace(",", "_")) * unit) if found and unit else 0
    if amount < 1:
        raise ConfigError(f"not {what}: {text!r}; write {forms}")
    return amount


def amount(value: object) -> object:
    """`16k`, `2M`, `1.5B` -> int; anything else comes back for pydantic to judge."""
    return parse_amount(value) if isinstance(value, str) else value


def _num_bytes(value: object) -> object:
    return parse_bytes(value) if isinstance(value, str) else value


Amount = Annotated[int, BeforeValidator(amount)]
NumBytes = Annotated[int, BeforeValidator(_num_bytes)]
