"""The scores of a run: evaluations.parquet, and bits per byte of what one asks for.

The figure of a set, a language or a source is the sum over its documents divided by the sum over
its documents, never a mean of means (torchtitan #4167). What is kept is one row a document.
Imports no torch: what stands is grouped without its seconds.
"""

from __future__ import annotations

import fcntl
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import schema
from pipeline.files import replacing

EVALUATIONS = pa.schema(
    [
        ("step", pa.int64()),
        ("set", pa.string()),
        ("language", pa.string()),
        ("source", pa.string()),
        ("content_hash", schema.HASH),
        ("nats", pa.float64()),  # of the scored tokens
        ("num_bytes", pa.int64()),  # of the original text, of the scored tokens
        ("num_tokens", pa.int64()),  # scored
    ]
)


@dataclass(frozen=True)
class Score:
    """Of a set, a language or a source."""

    bits_per_byte: float
    num_documents: int  # with a token that could be scored
    num_bytes: int


def keep_scores(path: Path, table: pa.Table) -> None:
    """Add the scores of one step to evaluations.parquet, in place of earlier ones of that step."""
    with alone(path):
        if path.exists() and len(table):
            others = pq.read_table(path).filter(pc.field("step") != table["step"][0])
            table = pa.concat_tables([others, table])
        with replacing(path) as temporary:
            pq.write_table(table, temporary)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait for whoever else adds to a file: a run, and an evaluator that follows it."""
    with open(path.with_name(f".{path.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kept_scores(path: Path, step: int) -> pa.Table:
    """The rows of one step in evaluations.parquet; none where it was not scored."""
    if not path.exists():
        return EVALUATIONS.empty_table()
    return pq.read_table(path, schema=EVALUATIONS).filter(pc.field("step") == step)


def scores_by(table: pa.Table, by: str) -> dict[str, Score]:
    """Scores by set, language or source: sum of nats / ln 2 / sum of bytes.

    A text that stands in several sets counts once in its language and once in its source.
    """
    once = (
        table.filter(pc.field("num_bytes") > 0)
        .group_by([by, "content_hash"], use_threads=False)
        .aggregate([("nats", "first"), ("num_bytes", "first")])
    )
    sums = [("nats_first", "sum"), ("num_bytes_first", "sum"), ("num_bytes_first", "count")]
    return {
        row[by]: Score(
            row["nats_first_sum"] / math.log(2) / row["num_bytes_first_sum"],
            row["num_bytes_first_count"],
            row["num_bytes_first_sum"],
        )
        for row in once.group_by(by).aggregate(sums).sort_by(by).to_pylist()
    }


def bits_per_byte(table: pa.Table, by: str = "set") -> dict[str, float]:
    """The figures of `scores_by` alone."""
    return {name: score.bits_per_byte for name, score in scores_by(table, by).items()}
