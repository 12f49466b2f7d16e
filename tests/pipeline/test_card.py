from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.card import card, main
from pipeline.files import read_json
from pipeline.sql import ask


def test_every_number_is_of_the_corpus(many_parts: Path) -> None:
    found = read_json(many_parts / "corpus.json")
    ingest = found["stages"]["ingest"]["totals"]
    lines = card(many_parts).splitlines()
    assert lines[0] == "# Data card: corpus"
    titles = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert titles == [
        "Sources",
        "Languages",
        "Licences that documents state",
        "From records to text",
        "Shares that pass each preset",
        "Filters and duplicates",
        "Held-out sets",
        "Tokens",
        "Known limits",
    ]
    assert f"| documents | {ingest['documents']} | {ingest['bytes']:,} |  |" in lines
    assert "| rejected: bad_utf8 | -1 |  |  |" in lines
    assert "| tales-en | not stated | 123 |" in lines
    assert any(line.startswith("| en | 123 | ") for line in lines)
    assert "- `tales-zh`: zh.jsonl, kind book; kept fields: author" in lines
    sets = read_json(many_parts / "heldout.json")["sets"]
    for name, entry in sets.items():
        assert any(line.startswith(f"| {name} | ") for line in lines), name
        assert entry["documents"] > 0
    assert any(
        line.startswith(f"{found['stages']['tokens']['totals']['tokens']:,} by") for line in lines
    )


def test_shares_that_pass_a_preset(many_parts: Path) -> None:
    """They are those of a question that names the preset; code has no rules."""
    question = (
        "select source, lang, count(*) as n, count(*) filter (fineweb.pass) as fineweb, "
        "count(*) filter (gopher.pass) as gopher from documents group by all order by source"
    )
    with ask(many_parts, question, macros={}, timeout_seconds=60) as batches:
        rows = batches.read_all().to_pylist()
    lines = card(many_parts).splitlines()
    head = lines.index("| source | language | documents | gopher | c4 | fineweb | fineweb2 |")
    shown = [line.strip("| ") for line in lines[head + 2 : head + 4]]
    table = {line.split(" | ")[0]: line for line in shown}
    assert table.keys() == {"tales-en", "tales-zh"}
    for row in rows:
        cells = table[row["source"]].split(" | ")
        assert cells[1:3] == [row["lang"], str(row["n"])]
        for cell, preset in ((cells[3], "gopher"), (cells[5], "fineweb")):
            assert cell == f"{100 * row[preset] / row['n']:.1f} %"


def test_a_file_is_written(
    many_parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(many_parts), "--output", str(tmp_path / "card.md")]) == 0
    assert (tmp_path / "card.md").read_text("utf-8") == card(many_parts)
    assert capsys.readouterr().out == f"wrote {tmp_path / 'card.md'}\n"
