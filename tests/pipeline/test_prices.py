from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import ConfigError, load
from pipeline.prices import Prices

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_can_be_used() -> None:
    assert load(ROOT / "examples/prices.yaml", Prices).currency == "USD"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cpu_core_hour: -1", "key `cpu_core_hour`"),
        ("cpu_core_hour: .inf", "key `cpu_core_hour`"),
        ("currency: dollars", "three capital letters are expected, as in USD or CNY"),
        ("cpu_hour: 1", "did you mean `gpu_hour`?"),
        ("source: ''", "key `source`"),
    ],
)
def test_what_cannot_be_a_price(tmp_path: Path, line: str, message: str) -> None:
    values = {"currency": "USD", "cpu_core_hour": "0.1", "storage_gb_month": "0.1", "source": "x"}
    key, value = line.split(": ")
    path = tmp_path / "prices.yaml"
    path.write_text("".join(f"{k}: {v}\n" for k, v in (values | {key: value}).items()))
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        load(path, Prices)
