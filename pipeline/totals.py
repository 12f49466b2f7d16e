"""Views of totals: by shard, by stage, and where the time went."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import schema
from pipeline.prices import prices_of
from pipeline.relations import Corpus, numbered
from pipeline.syntax import text_literal
from pipeline.timings import path_of, read_records


def shards(corpus: Corpus) -> str:
    """One row per part and source of it."""
    rows = numbered(corpus, "documents", schema.DOCUMENTS)
    return (
        "select part, source, count(num_bytes) as documents, sum(num_bytes)::bigint as bytes "
        f"from ({rows}) group by all order by all"
    )


def stages(corpus: Corpus) -> str:
    """The totals of each stage, as JSON."""
    found = corpus.manifest["stages"]
    columns = {
        "stage": pa.array(list(found), pa.string()),
        "fingerprint": pa.array([stage["fingerprint"] for stage in found.values()], pa.string()),
        "totals": pa.array([json.dumps(s["totals"]) for s in found.values()], pa.string()),
        "seconds": pa.array([stage["seconds"] for stage in found.values()], pa.float64()),
    }
    corpus.connection.register("corpus.json stages", pa.table(columns))
    return 'select * from "corpus.json stages"'


def timings(corpus: Corpus) -> str:
    """One row per stage and part: where the time went."""
    path = path_of(corpus.root)
    table = pq.read_table(path) if path.exists() else read_records(corpus.root)
    corpus.connection.register("timings of parts", table)
    return 'select * from "timings of parts"'


def costs(corpus: Corpus) -> str:
    """One row per stage: what it used, and what that costs where prices are known."""
    prices = prices_of(corpus.root)
    columns = ["stage", "sum(cpu_seconds) as cpu_seconds"]
    columns += ["sum(cpu_seconds) / 3600 as cpu_core_hours", "sum(bytes)::bigint as stored_bytes"]
    if prices is None:
        names = {"cpu_cost": "double", "storage_cost_per_month": "double", "currency": "varchar"}
        columns += [f"null::{kind} as {name}" for name, kind in names.items()]
    else:
        columns.append(f"sum(cpu_seconds) / 3600 * {prices.cpu_core_hour!r} as cpu_cost")
        month = prices.storage_gb_month
        columns.append(f"sum(bytes) / 1e9 * {month!r} as storage_cost_per_month")
        columns.append(f"{text_literal(prices.currency)} as currency")
    return f"select {', '.join(columns)} from ({timings(corpus)}) group by stage order by 2 desc"
