from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pipeline import timings
from pipeline.files import read_json
from pipeline.prices import Prices, keep_prices
from pipeline.shards import load_shards
from pipeline.sql import ask


def rows(root: Path, question: str) -> list[tuple[Any, ...]]:
    with ask(root, question, macros={}, timeout_seconds=60) as batches:
        table = batches.read_all()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_one_row_for_each_part_of_each_stage(many_parts: Path) -> None:
    question = (
        "select split_part(stage, '/', -1), count(*), sum(documents)::bigint, "
        "sum(text_bytes)::bigint from timings group by 1"
    )
    found = {(stage, n): (docs, text) for stage, n, docs, text in rows(many_parts, question)}
    stages = read_json(many_parts / "corpus.json")["stages"]
    total = stages["ingest"]["totals"]
    num_parts = len(load_shards(many_parts))
    each = (total["documents"], total["bytes"])
    tokenizer = read_json(many_parts / "corpus.json")["tokenizer"]["hash"]
    for stage in ("ingest", "gopher", tokenizer, "signatures", "nominees"):
        assert found[stage, num_parts] == each
    assert found["components", 1] == (None, None)


def test_the_table_says_what_the_records_say(many_parts: Path, tmp_path: Path) -> None:
    question = "select * from timings order by stage, part"
    written = rows(many_parts, question)
    assert all(row[-2] is not None and row[-1] is not None for row in written)  # host, finished
    copy = tmp_path / "corpus"
    shutil.copytree(many_parts, copy)
    timings.path_of(copy).unlink()
    assert rows(copy, question) == written


def test_costs_are_arithmetic_over_prices(many_parts: Path, tmp_path: Path) -> None:
    copy = tmp_path / "corpus"
    shutil.copytree(many_parts, copy)
    question = "select stage, cpu_seconds, stored_bytes, cpu_cost, storage_cost_per_month, currency"
    for stage, cpu, stored, cpu_cost, month, currency in rows(copy, f"{question} from costs"):
        assert (cpu_cost, month) == (cpu / 3600 * 0.5, stored / 1e9 * 0.02), stage
        assert currency == "EUR"
    prices = Prices(currency="CNY", cpu_core_hour=36, storage_gb_month=0, source="another test")
    keep_prices(copy, prices)
    assert {(row[3], row[5]) for row in rows(copy, f"{question} from costs")} == {
        (row[1] / 3600 * 36, "CNY") for row in rows(copy, f"{question} from costs")
    }
    (copy / "stats/prices.json").unlink()
    assert {row[3:] for row in rows(copy, f"{question} from costs")} == {(None, None, None)}
