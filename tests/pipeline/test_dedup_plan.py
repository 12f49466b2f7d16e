"""The plan of near deduplication at sizes that no machine here has."""

from __future__ import annotations

from pathlib import Path

import pytest

from mixtures import dedup_commands
from pipeline.auditing.plan import RATES, plan, told
from pipeline.dedup_settings import Near
from pipeline.transforms import contraction, near_join

BILLION = 10**9


def test_what_is_computed_follows_the_code_of_the_join() -> None:
    for documents in (10**4, 10**7, BILLION, 100 * BILLION):
        found = plan(documents, 3_000, Near())
        assert found.text_bytes == 3_000 * documents
        assert found.partitions == near_join.partitions(found.text_bytes)
        assert (found.rounds > 0) == contraction.is_needed(found.edges)
        assert found.kept_bytes == documents * (21 * 12 + 16 + 16)
        assert found.moved_bytes["keys, sketches"] == documents * (21 * 12 + 16)


def test_cpu_time_per_document_hardly_grows_and_memory_is_that_of_a_worker() -> None:
    small, large = (plan(n, 3_000, Near()) for n in (BILLION, 100 * BILLION))
    each = [sum(p.cpu_seconds.values()) / p.documents for p in (small, large)]
    assert each[1] < 1.2 * each[0]
    assert small.worker_bytes < large.worker_bytes < 8e9
    assert small.hours <= large.hours <= 24.1
    assert small.workers < large.workers


def test_shards_are_as_large_as_slices_need() -> None:
    assert plan(10**7, 3_000, Near()).shard_bytes == 32_000_000
    large = plan(100 * BILLION, 3_000, Near())
    assert large.shard_bytes > 256_000_000
    fine = plan(100 * BILLION, 3_000, Near(), shard_bytes=32_000_000)
    assert fine.cpu_seconds["forest"] > 3 * large.cpu_seconds["forest"]


def test_more_workers_take_less_time_and_cost_the_same() -> None:
    few, many = (plan(BILLION, 3_000, Near(), workers=n) for n in (10, 100))
    assert (few.workers, many.workers) == (10, 100)
    assert many.hours < few.hours / 8
    assert few.cpu_seconds == many.cpu_seconds


def test_the_verb_prints_every_rate_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    prices = Path(__file__).parents[2] / "examples" / "prices.yaml"
    assert dedup_commands.main(["plan", "--documents", "1B", "--prices", str(prices)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("near duplicates of 1,000,000,000 documents, 3.0 TB of text\n")
    assert "partitions   8,192" in printed
    assert " USD of cores" in printed
    assert all(rate.source in printed for rate in RATES.values())
    assert "give --prices" in "\n".join(told(plan(1_000, 300, Near()), None))
