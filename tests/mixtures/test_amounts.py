"""Amounts of tokens as people write them."""

from __future__ import annotations

import pytest

from mixtures.amounts import parse_amount
from pipeline.config import ConfigError


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("500000", 500_000), ("500k", 500_000), ("2M", 2_000_000), ("1.5B", 1_500_000_000)],
)
def test_amounts(text: str, tokens: int) -> None:
    assert parse_amount(text) == tokens


@pytest.mark.parametrize("text", ["", "2 apples", "-1", "0", "M", "1e6"])
def test_not_an_amount(text: str) -> None:
    with pytest.raises(ConfigError, match="not an amount of tokens"):
        parse_amount(text)
