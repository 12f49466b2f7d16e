"""Lines across the corpus from corpus.yaml to SQL and mixture, and what new input makes again."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import kills
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus
import yaml
from small_corpus import assay

from pipeline.seeing.asking import rows

FOOTER = "Subscribe to our newsletter | 版权所有，转载请注明出处"
QUOTE = "The mill stood by the river, and the road went past it, and nobody knew who had built it."


def write(folder: Path) -> Path:
    path = small_corpus.write_inputs(folder, 30)
    more(folder, "site", range(24))
    path.write_text(
        path.read_text().replace(
            "tokenizer:", "  - {source: site, files: 'site*.jsonl', kind: web}\ntokenizer:", 1
        )
        + "shard_bytes: 12000\n"
        "across: {site_lines: {}, repeated_lines: {documents: 2}}\n"
        "edits: [site_lines, repeated_lines]\n"
    )
    return path


def more(folder: Path, name: str, numbers: range) -> None:
    """Pages of one site; of four of them a paragraph is the same."""
    with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as file:
        for n in numbers:
            text = f"{small_corpus.english(500 + n)}\n\n{FOOTER}"
            text = f"{QUOTE}\n\n{text}" if n % 6 == 0 else text
            url = f"https://www.valley.org/{n}"
            file.write(json.dumps({"id": f"site-{n}", "text": text, "url": url}) + "\n")


def files(root: Path) -> dict[str, bytes]:
    tables = ("joins/across", "signals/across", "edits/site_lines", "edits/repeated_lines")
    tables += ("places/repeated_lines",)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for table in tables
        for path in (root / table).rglob("part-*")
    }


def made(path: Path, *arguments: str) -> dict[str, int]:
    """Parts that `prepare` made of each stage."""
    said = assay("prepare", path, *arguments).stdout.splitlines()[-1]
    parts = said.removeprefix("made ").partition(";")[0].split(", ")
    return {name: int(num) for name, num in (part.split(" ")[:2] for part in parts)}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write(tmp_path_factory.mktemp("across"))
    tokenizer = path.parent / "tokenizer.json"
    assay("tokenizer", "train", path, "--vocab-size", "500", "--output", tokenizer)
    assert "pieces" in made(path, "--workers", "2")
    return path


def test_what_sql_says(corpus: Path) -> None:
    root = corpus.parent / "corpus"
    found = rows(
        root,
        "select across.num_site_lines s, across.num_repeated_lines r, count(*) n, "
        "max(across.most_documents) most from documents "
        "where source = 'site' group by all order by all",
    )
    assert found == [
        {"s": 1, "r": 1, "n": 20, "most": 24},
        {"s": 1, "r": 2, "n": 4, "most": 24},
    ]
    edits = rows(root, "select name, kind, count(*) n from edits group by all order by all")
    assert edits == [
        {"name": "repeated_lines", "kind": "repeated_line", "n": 28},  # 2 of a near copy
        {"name": "site_lines", "kind": "site_line", "n": 24},
    ]


def test_a_mixture_takes_the_footer_out(corpus: Path) -> None:
    sources = {"all": {"from": "web", "where": "source = 'site' and across.repeated_share < 0.9"}}
    mixture = {"corpora": {"web": "corpus"}, "sequence_length": 32, "sources": sources}
    path = corpus.parent / "mixture.yaml"
    path.write_text(yaml.safe_dump(mixture | {"edits": ["site_lines"]}))
    planned = json.loads(assay("mix", path, "--tokens", "320", "--json").stdout)
    (changes,) = [source["changes"] for source in planned["sources"]]
    assert changes["edited"] == 24
    assert changes["removed_bytes"] == 24 * (len(FOOTER.encode()) + 1)  # the blank line before it
    path.write_text(yaml.safe_dump(mixture | {"edits": ["repeated_paragraphs"]}))
    refused = assay("mix", path, "--tokens", "320", check=False).stderr
    assert (
        "add `across: [repeated_paragraphs]` and `edits: [site_lines, repeated_lines, " in refused
    )


def test_killed_anywhere_the_bytes_are_the_same(corpus: Path, tmp_path: Path) -> None:
    """And for one worker without Beam as for two with it."""
    root, told = corpus.parent / "corpus", tmp_path / "told"
    before = files(root)
    assert len(before) > 40
    stages = ("pieces", "across", "signals/across", "edits/site_lines", "edits/repeated_lines")
    for folder in (*(f"stats/{stage}" for stage in stages), "joins/across", "places", *stages[2:]):
        shutil.rmtree(root / folder)
    moments = random.Random(3)
    while not kills.prepared_or_killed(corpus, moments.randrange(60, 150), told):
        pass
    assert len(told.read_text().splitlines()) > 2
    assert files(root) == before


def test_new_input_is_hashed_alone_and_all_parts_are_told_anew(corpus: Path) -> None:
    root = corpus.parent / "corpus"
    parts = len(list((root / "documents").glob("part-*")))
    more(corpus.parent, "site-2", range(100, 103))
    stages = made(corpus, "--workers", "1")
    new = stages["ingest"]
    assert new < parts / 3
    assert stages["pieces"] == stages["signals/gopher"] == new
    assert stages["signals/across"] == stages["edits/site_lines"] == parts + new
    most = "select max(across.most_documents) n from documents"
    assert rows(root, most) == [{"n": 27}]


def test_what_is_forgotten_has_no_edits(corpus: Path) -> None:
    root = corpus.parent / "corpus"
    asked = corpus.parent / "ids.txt"
    ids = rows(root, "select id from documents where starts_with(source_id, 'site-1')")
    asked.write_text("\n".join(row["id"] for row in ids))
    assay("forget", root, "--ids", asked, "--reason", "asked", "--runs", asked.parent, "--delete")
    gone = {bytes.fromhex(row["id"]) for row in ids}
    for table in ("edits/site_lines", "edits/repeated_lines", "places/repeated_lines"):
        tables = [pq.read_table(path) for path in (root / table).glob("part-*")]
        assert not gone & set(pa.concat_tables(tables)["id"].to_pylist())
    nulls = [pq.read_table(path) for path in (root / "signals/across").glob("part-*")]
    assert pa.concat_tables(nulls)["repeated_share"].null_count == len(ids) >= 11
    again = assay("prepare", corpus, "--workers", "1").stdout
    assert "nothing to do, all stages stand" in again
