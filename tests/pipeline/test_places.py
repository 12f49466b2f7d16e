"""What views say of domains."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_corpus

from pipeline.files import read_json, write_json
from pipeline.seeing import compare
from pipeline.seeing.asking import rows
from pipeline.sql import connect

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


# The languages are en, en, en, zh, und and en, en, zh: tests/tiny_corpus.py.
SCORES: dict[str, dict[int, list[float | None]]] = {
    "ads": {0: [0, 0.2, 0.9, 0.1, 0.9], 1: [0, 0, 0.19]},
    "generated": {0: [0.5, 0, 0, 0, None], 1: [0, None, 0.6]},
    **{name: {0: [0] * 5, 1: [0] * 3} for name in ("unsafe", "broken", "copied")},
}


def scored(root: Path, scores: dict[str, dict[int, list[float | None]]]) -> Path:
    """The tiny corpus with these scores of detectors."""
    tiny_corpus.write(root)
    for group, parts in scores.items():
        (root / "signals" / group).mkdir()
        for part, values in parts.items():
            table = pa.table({"score": pa.array(values, pa.float32())})
            pq.write_table(table, root / f"signals/{group}/part-{part:05d}.parquet")
    found = read_json(root / "corpus.json")
    write_json(root / "corpus.json", found | {"signals": [*found["signals"], *scores]})
    return root


def test_shares_that_pass_presets_and_that_detectors_flag(tmp_path: Path) -> None:
    """Of the documents that are judged: those with a value, in a language that has a cut."""
    root = scored(tmp_path / "all", SCORES)
    shares = "pass.clean, flagged.ads, flagged.generated as ai, flagged.unsafe"
    assert rows(root, f"select source, {shares} from sources") == [
        {"source": "qa", "clean": 0.5, "ads": 0, "ai": 0.5, "unsafe": 0},
        {"source": "web", "clean": 0.25, "ads": 0.5, "ai": 0.25, "unsafe": 0},
    ]
    passing = {"gopher": 0.0, "clean": 0.25}
    assert rows(root, "select pass from sources where source = 'web'") == [{"pass": passing}]
    named = "select s.pass.gopher as g, median.ads.score as m from sources s where source = 'web'"
    assert rows(root, named) == [{"g": 0.0, "m": pytest.approx(0.2)}]
    every = rows(root, "select * from domains")[0]
    assert every["flagged"] == {"ads": 2 / 7, "unsafe": 0, "broken": 0, "copied": 0} | {
        "generated": 2 / 6
    }
    part = scored(tmp_path / "ads", {"ads": SCORES["ads"]})
    assert rows(part, "select flagged from sources order by source") == [
        {"flagged": {"ads": share}} for share in (0, 0.5)
    ]


def test_what_nobody_asks_for_is_not_worked_out(tmp_path: Path) -> None:
    with connect(scored(tmp_path, SCORES), names=frozenset({"sources", "documents"})) as asked:
        columns = [row[0] for row in asked.execute("describe sources").fetchall()]
        assert not {"pass", "flagged", "median"} & set(columns)
        assert "ads" not in [row[0] for row in asked.execute("describe documents").fetchall()]


def test_a_source_that_fills_with_advertisements_raises_an_alarm(tmp_path: Path) -> None:
    """Though as many of its documents are kept as before."""
    before = scored(tmp_path / "before", {"ads": {0: [0] * 5, 1: [0] * 3}})
    after = scored(tmp_path / "after", {"ads": {0: [0.9] * 5, 1: [0] * 3}})
    found = compare.shares_by_source(before, after)
    assert found[1]["shares"]["flagged.ads"] == [
        {"share": 0, "documents": 4},
        {"share": 1, "documents": 4},
    ]
    assert list(found[0]["shares"]) == ["kept", "flagged.ads", "gopher.pass"]
    assert compare.alarms(found) == [
        "\nalarms",
        "  source web: flagged.ads 0.0% -> 100.0% (noise 0.0%)",
    ]


def test_the_farm_of_hosts_in_the_docs(tmp_path: Path) -> None:
    """Eight documents; two of three hosts of farm.com advertise, and two of them are copies."""
    root = tiny_corpus.write(tmp_path)
    ads = {"score": [0.9, 0.9, 0, 0, 0, 0, 0, 0]}
    unsafe = dict.fromkeys(("gambling", "pornography", "fraud"), [0.0] * 8)
    hosts = {
        "institution": [False] * 8,
        "random_label": [1, 0.5, 0, 0, 0, 0, 0, 0],
        "site": ["farm.com"] * 3 + ["", "one.com", "one.com", "two.com", "two.com"],
    }
    domains = ["a.farm.com", "b.farm.com", "c.farm.com", None, "one.com", "one.com", "two.com"]
    for part, (first, end) in enumerate(((0, 5), (5, 8))):
        path = root / f"documents/part-{part:05d}.parquet"
        table = pq.read_table(path)
        named = pa.array([*domains, "m.two.com"][first:end], pa.string())
        pq.write_table(
            table.set_column(table.schema.get_field_index("domain"), "domain", named), path
        )
        for group, columns in {"ads": ads, "unsafe": unsafe, "hosts": hosts}.items():
            (root / "signals" / group).mkdir(exist_ok=True)
            values = pa.table({name: column[first:end] for name, column in columns.items()})
            pq.write_table(values, root / f"signals/{group}/part-{part:05d}.parquet")
    found = read_json(root / "corpus.json")
    signals = [*found["signals"], "ads", "unsafe", "hosts"]
    write_json(root / "corpus.json", found | {"signals": signals})
    text = (Path(__file__).parents[2] / "docs/seeing.md").read_text(encoding="utf-8")
    query = "select hosts.site" + text.partition('"select hosts.site')[2].partition('"')[0]
    both = rows(root, query.replace("num_hosts >= 20", "num_hosts >= 2"))
    assert [list(row.values())[:3] for row in both] == [["farm.com", 3, 3], ["two.com", 2, 2]]
    shares = [tuple(row.values())[3:] for row in both]
    assert shares == [pytest.approx((2 / 3, 2 / 3, 2 / 3)), (0, 0, 0)]
