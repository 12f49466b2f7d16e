"""Views of totals: by shard, by source, by stage, and where the time went."""

from __future__ import annotations

import json

import pyarrow as pa

from pipeline import schema
from pipeline.files import read_json
from pipeline.relations import Corpus, numbered


def shards(corpus: Corpus) -> str:
    """One row per part and source of it."""
    rows = numbered(corpus, "documents", schema.DOCUMENTS)
    return (
        "select part, source, count(*) as documents, sum(num_bytes)::bigint as bytes "
        f"from ({rows}) group by all order by all"
    )


def sources(corpus: Corpus) -> str:
    tokens = "sum(num_tokens)::bigint" if corpus.manifest.get("tokenizer") else "null::bigint"
    return (
        "select source, count(*) as documents, sum(num_bytes)::bigint as bytes, "
        f"{tokens} as tokens, avg(kept::int) as kept_share "
        "from documents group by all order by all"
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
    """One row per commit record: where the time went. `part` of a join is its partition."""
    records = [read_json(path) for path in sorted((corpus.root / "stats").rglob("part-*.json"))]
    columns = {
        "stage": pa.array([r["stage"] for r in records], pa.string()),
        "part": pa.array([r["part"] for r in records], pa.int32()),
        "bytes": pa.array(
            [sum(output["bytes"] for output in r["outputs"].values()) for r in records], pa.int64()
        ),
        "seconds": pa.array([r["seconds"] for r in records], pa.float64()),
        "cpu_seconds": pa.array([r["cpu_seconds"] for r in records], pa.float64()),
    }
    corpus.connection.register("commit records", pa.table(columns))
    return 'select * from "commit records"'
