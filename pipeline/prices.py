"""prices.yaml: what a core, a GPU and a gigabyte cost. Every key is documented where it stands.

`assay prepare corpus.yaml --prices prices.yaml` keeps them in the corpus, for its view `costs`.
There are no default prices: they differ by more than ten times between providers, and change.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from pipeline import corpus, publish
from pipeline.config import Settings, check
from pipeline.files import read_sealed, write_sealed


class Prices(Settings):
    """prices.yaml."""

    currency: str  # three capital letters, ISO 4217: USD, CNY
    cpu_core_hour: float = Field(ge=0, allow_inf_nan=False)  # price of one core for one hour
    gpu_hour: float = Field(0.0, ge=0, allow_inf_nan=False)  # of one GPU for one hour
    storage_gb_month: float = Field(ge=0, allow_inf_nan=False)  # of 10^9 bytes for one month
    source: str = Field(min_length=1)  # where the prices stand, and of which day

    @field_validator("currency")
    @classmethod
    def _is_a_code(cls, currency: str) -> str:
        if len(currency) != 3 or not (currency.isascii() and currency.isupper()):
            raise ValueError("three capital letters are expected, as in USD or CNY")
        return currency


def keep_prices(root: Path, prices: Prices) -> None:
    """Keep prices in a finished corpus."""
    if prices_of(root) != prices:
        with corpus.locked(root):
            write_sealed(_path(root), prices.model_dump())
            publish.finish(root)


def prices_of(root: Path) -> Prices | None:
    """The prices that a corpus was given, if any."""
    path = _path(root)
    if not path.exists():
        return None
    found = read_sealed(path)
    if found is None:
        raise corpus.CorpusError(f"{path} is damaged; delete it, and give --prices again")
    return check(found, Prices, str(path))


def _path(root: Path) -> Path:
    return root / "stats" / "prices.json"
