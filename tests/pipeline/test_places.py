"""What views say of domains."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_corpus

from pipeline.seeing.asking import rows

DOMAINS = {0: ["a.example", "a.example", "b.example", None, "b.example"], 1: ["b.example"] * 3}
PAGE = "one page of a template, with the same words as every other page of it "


def test_a_template_is_seen_by_how_far_its_domain_can_be_compressed(tmp_path: Path) -> None:
    root = tiny_corpus.write(tmp_path)
    for part, domains in DOMAINS.items():
        path = root / f"documents/part-{part:05d}.parquet"
        table = pq.read_table(path)
        texts = [
            PAGE * 10 if domain == "a.example" else text
            for domain, text in zip(domains, table["text"].to_pylist(), strict=True)
        ]
        for name, values in (("domain", domains), ("text", texts)):
            at = table.schema.get_field_index(name)
            table = table.set_column(at, name, pa.array(values, pa.string()))
        pq.write_table(table, path)
    columns = "domain, documents, compression_ratio as ratio"
    found = {row["domain"]: row for row in rows(root, f"select {columns} from domains")}
    stored = pa.Codec("zstd", compression_level=1).compress((PAGE * 20).encode())
    assert found["a.example"]["ratio"] == pytest.approx(len(PAGE * 20) / len(stored))
    assert found["a.example"]["ratio"] > 10
    assert found["b.example"]["ratio"] < 2
    assert found[None]["documents"] == 1
    first, *_ = rows(root, "select domain from domains")
    assert first == {"domain": "b.example"}
    both = rows(root, "select most_repeated_line as line, compression_ratio from domains")
    assert len(both) == 3
