"""Amounts as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.amounts import counted, parse_amount, parse_bytes
from pipeline.config import ConfigError, load
from pipeline.settings import CorpusSettings


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("500000", 500_000),
        ("500k", 500_000),
        ("2M", 2_000_000),
        ("1.5B", 1_500_000_000),
        ("12,500k", 12_500_000),
        ("9007199254740993", 9_007_199_254_740_993),
    ],
)
def test_amounts(text: str, tokens: int) -> None:
    assert parse_amount(text) == tokens


@pytest.mark.parametrize("text", ["", "2 apples", "-1", "0", "M", "1e6", "2MB", "1,5B", "1,50"])
def test_not_an_amount(text: str) -> None:
    with pytest.raises(ConfigError, match="not an amount: .*; write 500000, 500k, 2M or 1.5B"):
        parse_amount(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("32000000", 32_000_000),
        ("32_000_000", 32_000_000),
        ("32,000,000", 32_000_000),
        ("500kB", 500_000),
        ("2MB", 2_000_000),
        ("2 MB", 2_000_000),
        ("2mb", 2_000_000),
        ("1.5GB", 1_500_000_000),
        ("4KiB", 4_096),
        ("2MiB", 2_097_152),
        ("1GiB", 1_073_741_824),
        ("200k", 200_000),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "MB", "-1MB", "0", "2B", "2MX", "2 apples", "1e6", "2 M B", "1,5GB", "٣MB"]
)
def test_not_a_size(text: str) -> None:
    with pytest.raises(ConfigError, match="not a size: .*; write 32000000, 500kB, 32MB, 1.5GB, or"):
        parse_bytes(text)


def test_keys_of_corpus_yaml_take_units(tmp_path: Path) -> None:
    path = tmp_path / "corpus.yaml"
    text = "{inputs: [{source: a, files: a.jsonl}], tokenizer: deepseek, %s}"
    path.write_text(text % "shard_bytes: 2MB, max_bad_files: 1k, heldout: {min_documents: 2k}")
    found = load(path, CorpusSettings)
    assert found.shard_bytes == 2_000_000
    assert (found.max_bad_files, found.heldout.min_documents) == (1_000, 2_000)
    path.write_text(text % "shard_bytes: 2 MX")
    with pytest.raises(ConfigError, match=r"yaml: key `shard_bytes`: not a size: '2 MX'; write"):
        load(path, CorpusSettings)
    path.write_text(text % "shard_bytes: 0.5kB")
    with pytest.raises(ConfigError, match=r"`shard_bytes`: expected 1,000 or more .value 500"):
        load(path, CorpusSettings)


def test_one_of_a_thing_is_no_plural() -> None:
    said = [counted(n, "source") for n in (0, 1, 2, 1_200)]
    assert said == ["0 sources", "1 source", "2 sources", "1,200 sources"]
    assert [counted(n, "corpus", "corpora") for n in (1, 2)] == ["1 corpus", "2 corpora"]
