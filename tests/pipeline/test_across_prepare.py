"""Lines across the corpus from corpus.yaml to SQL and mixture, and what new input makes again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small_corpus
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
        + "shard_bytes: 12000\nacross: [site_lines, repeated_lines]\n"
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
    return {
        str(path.relative_to(root)): path.read_bytes()
        for table in tables
        for path in (root / table).rglob("part-*")
    }


def made(path: Path, workers: int) -> dict[str, int]:
    """Parts that `prepare` made of each stage."""
    said = assay("prepare", path, "--workers", f"{workers}").stdout.splitlines()[-1]
    parts = said.removeprefix("made ").partition(";")[0].split(", ")
    return {name: int(num) for name, num in (part.split(" ")[:2] for part in parts)}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write(tmp_path_factory.mktemp("across"))
    tokenizer = path.parent / "tokenizer.json"
    assay("tokenizer", "train", path, "--vocab-size", "500", "--output", tokenizer)
    made(path, 2)
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
